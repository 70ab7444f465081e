import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Route } from './route.ts';

/** The path of a request as it was sent: an encoded slash or colon is part of its segment. */
export function rawPath(request: Request): string {
  const start = request.url.indexOf('/', request.url.indexOf('://') + 3);
  const end = request.url.indexOf('?', start);
  return request.url.slice(start, end < 0 ? undefined : end);
}

/** `/sandboxes/{sandboxID}` as Hono spells it. */
export function honoPath(path: string): string {
  return path.replace(/\{(\w+)\}/g, ':$1');
}

/** Which methods there are for a path; empty when there is no such route. */
export function allowedMethods(routes: readonly Route[], path: string): readonly string[] {
  const segments = path.split('/');
  const methods = new Set<string>();
  for (const route of routes) {
    const pattern = route.path.split('/');
    const matches =
      pattern.length === segments.length &&
      pattern.every((step, index) => (step.startsWith('{') ? segments[index] !== '' : step === segments[index]));
    if (!matches) continue;
    methods.add(route.method);
    if (route.method === 'GET') methods.add('HEAD');
  }
  return [...methods].sort();
}

/** @throws AenvError `invalid_request` when the percent-encoding of the path is broken */
export function requireDecodable(path: string): void {
  try {
    decodeURIComponent(path);
  } catch (error) {
    throw new AenvError('invalid_request', 'path: broken percent-encoding', { cause: error });
  }
}
