import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';

/**
 * Which encoding of a file the client wants (RFC 9110, 12.5.3). Gzip only for a client that names nothing but gzip:
 * HTTP libraries offer a list of encodings with every request, and compressing for a client that did not ask costs the
 * guest more processor time than the bytes would cost on the way.
 * @throws AenvError `not_acceptable`
 */
export function chooseEncoding(acceptEncoding: string | undefined): 'identity' | 'gzip' {
  if (acceptEncoding === undefined || acceptEncoding.trim() === '') return 'identity';
  const weights = new Map<string, number>();
  for (const item of acceptEncoding.toLowerCase().split(',')) {
    const [name = '', ...parameters] = item.split(';').map((part) => part.trim());
    const weight = parameters.find((parameter) => parameter.startsWith('q='));
    weights.set(name, weight === undefined ? 1 : Number(weight.slice(2)) || 0);
  }
  const gzip = weights.get('gzip') ?? weights.get('x-gzip') ?? weights.get('*') ?? 0;
  const identity = weights.get('identity') ?? weights.get('*') ?? 1;
  if (weights.size === 1 && weights.has('gzip') && gzip > 0) return 'gzip';
  if (identity > 0) return identity >= gzip || !weights.has('identity') ? 'identity' : 'gzip';
  if (gzip > 0) return 'gzip';
  throw new AenvError('not_acceptable', 'no acceptable encoding: this answer can be identity or gzip');
}
