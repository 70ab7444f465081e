import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { User } from '../users/users.ts';

/** What a process finds when nobody says otherwise. */
export const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

export interface EnvironmentParts {
  readonly user: User;
  /** set for the sandbox by its creator, including what its template brings */
  readonly sandbox: Readonly<Record<string, string>>;
  /** set by the platform; the creator cannot change these */
  readonly platform: Readonly<Record<string, string>>;
  readonly request: Readonly<Record<string, string>>;
  readonly terminal: boolean;
}

/**
 * The environment of a new process; what comes later wins: a terminal type and a locale that can print all characters,
 * the login variables, the sandbox's, the platform's, the request's.
 * @throws AenvError `invalid_request` for a name or a value that execve(2) cannot pass
 */
export function buildEnvironment({
  user,
  sandbox,
  platform,
  request,
  terminal,
}: EnvironmentParts): Record<string, string> {
  const environment: Record<string, string> = Object.assign(
    Object.create(null),
    terminal ? { TERM: 'xterm-256color' } : {},
    { LANG: 'C.UTF-8', PATH: DEFAULT_PATH, HOME: user.home, USER: user.name, LOGNAME: user.name },
    sandbox,
    platform,
    request,
  );
  for (const [name, value] of Object.entries(environment)) {
    if (name === '' || name.includes('=') || name.includes('\0')) {
      throw new AenvError('invalid_request', `'${name}' cannot be the name of an environment variable`);
    }
    if (value.includes('\0')) throw new AenvError('invalid_request', `the value of ${name} holds a NUL character`);
  }
  return environment;
}
