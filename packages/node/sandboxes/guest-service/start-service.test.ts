import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, test } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { systemClock } from '@aenv/platform/clock/clock.ts';
import type { VmExit } from '@aenv/vmm/contract/micro-vm.ts';
import { decodeFrames, encodeFrame } from './connect-frames.ts';
import type { GuestService } from './contract.ts';
import { createStartService } from './start-service.ts';

/** What envd was asked to run. */
interface Started {
  readonly process: { readonly cmd: string; readonly args: readonly string[]; readonly cwd: string };
  readonly user: string;
  readonly token: string | undefined;
  readonly gone: Promise<unknown>;
}

let started: Started[];
/** what becomes of a command; the frames after its start */
let play: (command: string, response: ServerResponse) => void;
let healthy: boolean;
const guest = createServer((request, response) => {
  if (request.url === '/health') response.writeHead(healthy ? 200 : 503).end();
  else void runProcess(request, response);
});

async function runProcess(request: IncomingMessage, response: ServerResponse): Promise<void> {
  for await (const { message } of decodeFrames(request)) {
    const { process } = message as Pick<Started, 'process'>;
    const user = Buffer.from(request.headers.authorization?.slice('Basic '.length) ?? '', 'base64').toString();
    const token = request.headers['x-access-token'];
    started.push({ process, user, token: String(token), gone: once(response, 'close') });
    response.writeHead(200, { 'content-type': 'application/connect+json' });
    response.write(encodeFrame({ event: { start: { pid: 5 } } }));
    play(process.args[2] ?? '', response);
  }
}

const end = (response: ServerResponse, exitCode: number) => {
  response.write(encodeFrame({ event: { data: { stderr: Buffer.from('why\n').toString('base64') } } }));
  response.write(encodeFrame({ event: { end: { exitCode, exited: true, status: `exit status ${exitCode}` } } }));
  const last = encodeFrame({});
  last.writeUInt8(2, 0);
  response.end(last);
};

beforeEach(async () => {
  started = [];
  healthy = false;
  play = () => {};
  await new Promise<void>((resolve) => guest.listen(0, '127.0.0.1', resolve));
});
afterEach(async () => {
  guest.closeAllConnections();
  await new Promise((resolve) => guest.close(resolve));
});

function start(
  service: Omit<GuestService, 'workdir'>,
  options: { readonly readyMs?: number; readonly signal?: AbortSignal; readonly exited?: Promise<VmExit> } = {},
): Promise<void> {
  const envdPort = (guest.address() as AddressInfo).port;
  const { readyMs = 5_000, signal = new AbortController().signal, exited = new Promise<VmExit>(() => {}) } = options;
  return createStartService({ clock: systemClock, envdPort, readyMs })({
    service: { workdir: '/w', accessToken: 'token', ...service },
    ...{ vm: { exited }, address: '127.0.0.1', signal },
  });
}
const http = () => ({ kind: 'http', port: (guest.address() as AddressInfo).port, path: '/health' }) as const;
const command = { cmd: 'serve "x"', user: 'root' };
const isCode = (code: string, text: RegExp) => (error: unknown) =>
  error instanceof AenvError && error.code === code && text.test(error.message);

test('the command runs as its user in the folder of the template, and is left running when the port answers', async () => {
  const ready = start({ startCommand: command, ready: http() });
  await systemClock.sleep(100);
  healthy = true;
  await ready;
  const [one, ...more] = started;
  assert.deepEqual(one?.process, { cmd: '/bin/bash', args: ['-l', '-c', 'serve "x"'], cwd: '/w' });
  assert.deepEqual([one?.user, one?.token, more.length], ['root:', 'token', 0]);
  await one?.gone;
});

test('without a check the sandbox waits until the command runs, and no longer', async () => {
  await start({ startCommand: command });
  assert.equal(started.length, 1);
  await started[0]?.gone;
});

test('a ready command is repeated until it succeeds, with or without a start command', async () => {
  let left = 3;
  play = (cmd, response) => {
    if (cmd === 'check') end(response, --left > 0 ? 1 : 0);
  };
  const ready = { kind: 'command', cmd: 'check', user: 'user' } as const;
  await start({ startCommand: command, ready });
  assert.equal(started.filter(({ process }) => process.args[2] === 'check').length, 3);
  left = 1;
  await start({ ready });
});

test('a command that fails is told at once with its last output; one that ends well is waited for no more', async () => {
  play = (_, response) => end(response, 3);
  await assert.rejects(
    start({ startCommand: command, ready: http() }),
    isCode('start_command_failed', /exit status 3.*\nwhy$/s),
  );
  play = (_, response) => end(response, 0);
  const ready = start({ startCommand: command, ready: http() });
  healthy = true;
  await ready;
});

test('a guest that is not ready in time, that dies, or whose start is broken off is given up', async () => {
  const service = { startCommand: command, ready: http() };
  await assert.rejects(
    start(service, { readyMs: 80 }),
    isCode('start_command_failed', /not ready within 0.08 s: port \d+/),
  );
  const exited = Promise.resolve({ code: 1, signal: null, reason: 'died', lastLines: 'panic' } as const);
  await assert.rejects(start(service, { exited }), isCode('vm_died', /panic/));
  const controller = new AbortController();
  const broken = start(service, { signal: controller.signal });
  controller.abort(new AenvError('shutting_down', 'enough'));
  await assert.rejects(broken, isCode('shutting_down', /enough/));
  for (const { gone } of started) await gone;
});

test('what envd refuses is told', async () => {
  play = (_, response) => {
    const last = encodeFrame({ error: { code: 'unauthenticated', message: "unknown user 'ghost'" } });
    last.writeUInt8(2, 0);
    response.end(last);
  };
  await assert.rejects(
    start({ startCommand: command, ready: http() }),
    isCode('start_command_failed', /unknown user 'ghost'/),
  );
});
