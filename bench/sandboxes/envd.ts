import { type IncomingMessage, request } from 'node:http';
import { ENVD_PORT } from '@aenv/contracts/guest/link.ts';
import type { TestDaemon } from '../../tests/harness/daemon.ts';
import type { BenchSandbox } from './sandbox.ts';

/** What a command printed, and how long it took. */
export interface CommandRun {
  /** request to start to the first byte of output, `ms` */
  readonly firstByteMs: number;
  readonly stdout: string;
}

/** Where an envd is asked, as root. */
export interface EnvdPlace {
  readonly url: string;
  readonly headers: Readonly<Record<string, string | number>>;
  /** false: a connection for each call */
  readonly agent?: false;
}

function envdOf(daemon: TestDaemon, sandbox: Pick<BenchSandbox, 'id' | 'accessToken'>): EnvdPlace {
  return {
    url: daemon.url,
    headers: {
      'e2b-sandbox-id': sandbox.id,
      'e2b-sandbox-port': ENVD_PORT,
      'x-access-token': sandbox.accessToken,
      authorization: `Basic ${Buffer.from('root:').toString('base64')}`,
    },
  };
}

/** A flag byte and the length of the message (Connect protocol, "streaming RPCs"). */
const ENVELOPE = 5;

/**
 * Runs a command as root through the proxy, as an SDK does: a Connect stream of `process.Process/Start`. Plain sockets,
 * so that no client library is part of the time.
 * @throws Error when it prints nothing or does not exit with 0
 */
export function runCommand(
  daemon: TestDaemon,
  sandbox: Pick<BenchSandbox, 'id' | 'accessToken'>,
  cmd: string,
  args: readonly string[],
): Promise<CommandRun> {
  return runCommandAt(envdOf(daemon, sandbox), cmd, args);
}

/** The same at any address. */
export async function runCommandAt(envd: EnvdPlace, cmd: string, args: readonly string[]): Promise<CommandRun> {
  const message = Buffer.from(JSON.stringify({ process: { cmd, args } }));
  const envelope = Buffer.alloc(ENVELOPE);
  envelope.writeUInt32BE(message.length, 1);
  const body = Buffer.concat([envelope, message]);
  const headers = { 'content-type': 'application/connect+json', 'connect-protocol-version': '1' };
  const begin = performance.now();
  const answer = await send(envd, '/process.Process/Start', body, headers);
  if (answer.statusCode !== 200) throw new Error(`Start was answered with ${answer.statusCode}`);

  let firstByteMs: number | undefined;
  let exit: { readonly exitCode?: number; readonly exited?: boolean } | undefined;
  const stdout: Buffer[] = [];
  let rest = Buffer.alloc(0);
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= ENVELOPE && rest.length >= ENVELOPE + rest.readUInt32BE(1)) {
      const end = ENVELOPE + rest.readUInt32BE(1);
      const { event, error } = JSON.parse(rest.subarray(ENVELOPE, end).toString()) as StartMessage;
      rest = rest.subarray(end);
      if (error !== undefined) throw new Error(`${cmd}: ${error.message}`);
      if (event?.data?.stdout !== undefined) {
        firstByteMs ??= performance.now() - begin;
        stdout.push(Buffer.from(event.data.stdout, 'base64'));
      }
      exit ??= event?.end;
    }
  }
  const text = Buffer.concat(stdout).toString();
  if (exit?.exited !== true || (exit.exitCode ?? 0) !== 0)
    throw new Error(`${cmd} ended badly: ${JSON.stringify(exit)}`);
  return { firstByteMs: firstByteMs ?? Number.NaN, stdout: text };
}

interface StartMessage {
  readonly event?: {
    readonly data?: { readonly stdout?: string };
    readonly end?: { readonly exitCode?: number; readonly exited?: boolean };
  };
  readonly error?: { readonly message?: string };
}

/** Writes a file that root may execute. */
export async function uploadProgram(
  daemon: TestDaemon,
  sandbox: BenchSandbox,
  path: string,
  data: Uint8Array,
): Promise<void> {
  const target = `/files?${new URLSearchParams({ path, username: 'root' })}`;
  const answer = await send(envdOf(daemon, sandbox), target, data, { 'content-type': 'application/octet-stream' });
  answer.resume();
  if (answer.statusCode !== 200) throw new Error(`the upload of ${path} was answered with ${answer.statusCode}`);
  await runCommand(daemon, sandbox, '/bin/sh', ['-c', `chmod 0755 ${path} && echo done`]);
}

function send(
  envd: EnvdPlace,
  path: string,
  body: Uint8Array,
  headers: Readonly<Record<string, string>>,
): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const call = request(`${envd.url}${path}`, {
    method: 'POST',
    timeout: 60_000,
    ...(envd.agent === undefined ? {} : { agent: envd.agent }),
    headers: { ...envd.headers, ...headers, 'content-length': body.length },
  });
  call.once('response', resolve);
  call.once('error', reject);
  call.once('timeout', () => call.destroy(new Error(`${path} was not answered in time`)));
  call.end(body);
  return promise;
}
