import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { run } from '@aenv/platform/process/run.ts';
import { z } from 'zod';
import type { Credentials } from './contract.ts';

const HELPER_MS = 15_000;
const MAX_ANSWER = 256 * 1024;
const answerSchema = z.object({ Username: z.string(), Secret: z.string() });

/**
 * Asks a credential helper of Docker: `docker-credential-NAME get`, the server on stdin, JSON on stdout; with exit code 1
 * and "not found" there it has none (docker-credential-helpers, "Development").
 * @param env of the helper, which finds it by PATH; default is that of this process
 * @throws AenvError `registry_auth` when it is missing, fails, or does not answer in time; what it printed to stdout,
 *   which may be a secret, is not in the message
 */
export async function askHelper(
  name: string,
  server: string,
  options: { readonly env?: NodeJS.ProcessEnv; readonly timeoutMs?: number } = {},
): Promise<Credentials | undefined> {
  if (!/^[\w.-]+$/.test(name)) throw failed(name, 'its name is not that of a program');
  const result = await run([`docker-credential-${name}`, 'get'], {
    input: server,
    timeoutMs: options.timeoutMs ?? HELPER_MS,
    maxOutput: MAX_ANSWER,
    okCodes: [0, 1],
    ...(options.env === undefined ? {} : { env: options.env }),
  }).catch((error: unknown) => {
    if (!(error instanceof AenvError)) throw error;
    throw failed(name, error.code === 'host_command_missing' ? 'it is not installed' : error.message, error);
  });
  if (result.code !== 0) {
    if (/not found|no credentials/i.test(result.stdout + result.stderr)) return undefined;
    throw failed(name, 'it ended with exit code 1');
  }
  const answer = answerSchema.safeParse(parseJson(result.stdout));
  if (!answer.success) throw failed(name, 'its answer is not of the agreed form');
  const { Username: username, Secret: secret } = answer.data;
  return username === '<token>'
    ? { kind: 'identity-token', token: secret }
    : { kind: 'password', username, password: secret };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function failed(name: string, why: string, cause?: unknown): AenvError {
  return new AenvError('registry_auth', `credential helper docker-credential-${name.slice(0, 80)}: ${why}`, {
    remediation: "Install or mend the helper, or take it out of Docker's config.json.",
    cause,
  });
}
