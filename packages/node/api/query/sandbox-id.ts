import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';

/**
 * The id out of a path. Old clients send `<id>-<clientID>`, whose second part means nothing.
 * @throws AenvError `invalid_request` when it cannot be an id of any sandbox
 */
export function sandboxIdOf(text: string): string {
  const id = /^([a-z0-9]{1,64})(-[A-Za-z0-9]{0,64})?$/.exec(text)?.[1];
  if (id !== undefined) return id;
  throw new AenvError('invalid_request', `path.sandboxID: not a sandbox id: '${text.slice(0, 64)}'`, {
    remediation: 'Sandbox ids consist of a-z and 0-9; list sandboxes with `aenv ls`.',
  });
}
