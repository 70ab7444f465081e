import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, suite, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { type TestEnvd, testEnvd } from '../testing/envd.ts';
import { isAlive, isSoonGone } from '../testing/processes.ts';
import { collect, type Frame, run, start, stream, unary } from '../testing/rpc-client.ts';
import { DEFAULT_OUTPUT_LIMITS } from './output.ts';

let envd: TestEnvd;
before(async () => {
  envd = await testEnvd({ processes: { output: DEFAULT_OUTPUT_LIMITS, keepEndedMs: 1_500 } });
});
after(() => envd[Symbol.asyncDispose]());

const begin = async (script: string, request = {}, options = {}) => {
  const frames = start(envd.url, '/bin/bash', ['-c', script], { stdin: false, ...request }, options);
  const pid = (await frames.next()).value?.message.event?.start?.pid ?? 0;
  return { frames, pid };
};
const signal = (pid: number, name: string) =>
  unary(envd.url, 'process.Process/SendSignal', { process: { pid }, signal: name });
const connect = (pid: number) => stream(envd.url, 'process.Process/Connect', { process: { pid } });

// They mostly wait, so they wait together.
suite('the life of a process', { concurrency: true }, () => {
  test('Connect-Timeout-Ms kills the whole process group and is named in the end frame', async () => {
    const before = performance.now();
    const result = await run(
      envd.url,
      '/bin/bash',
      ['-c', 'sleep 100 & echo $!; sleep 100'],
      { stdin: false },
      { headers: { 'connect-timeout-ms': '400' } },
    );
    assert.ok(performance.now() - before < 4_000);
    assert.equal(result.error?.code, 'deadline_exceeded');
    assert.match(result.error?.message ?? '', /deadline of process/);
    assert.ok(await isSoonGone(Number(result.stdout)), 'the child in the background is gone as well');
    assert.ok(await isSoonGone(result.pid));
  });

  test('the deadline also holds when the client has left', async () => {
    const { frames, pid } = await begin('sleep 100', {}, { headers: { 'connect-timeout-ms': '3000' } });
    await frames.return(undefined);
    await delay(100);
    assert.equal(isAlive(pid), true);
    assert.ok(await isSoonGone(pid));
  });

  test('a deadline of weeks is none', async () => {
    const result = await run(envd.url, 'true', [], {}, { headers: { 'connect-timeout-ms': '9999999999' } });
    assert.equal(result.end?.status, 'exit status 0');
  });

  test('a client that leaves does not end the process; another one attaches and gets what follows and the end', async () => {
    const { frames, pid } = await begin('trap "echo later; exit 5" TERM; echo ready; while :; do sleep 0.05; done');
    await firstLine(frames);
    await frames.return(undefined);
    const again = connect(pid);
    assert.equal((await again.next()).value?.message.event?.start?.pid, pid);
    await signal(pid, 'SIGNAL_SIGTERM');
    const result = await collect(again);
    assert.equal(result.stdout, 'later\n');
    assert.equal(result.end?.exitCode, 5);
  });

  test('the end can be asked for a while longer, then the process is unknown', async () => {
    const { pid } = await run(envd.url, '/bin/bash', ['-c', 'exit 9'], { stdin: false });
    const late = await collect(connect(pid));
    assert.equal(late.pid, pid);
    assert.equal(late.end?.exitCode, 9);
    assert.equal((await signal(pid, 'SIGNAL_SIGKILL')).status, 404);
    await delay(1_700);
    assert.equal((await collect(connect(pid))).error?.code, 'not_found');
  });

  test('SIGKILL takes the children along, SIGTERM goes to the process alone', async () => {
    const killed = await begin('sleep 100 & echo $!; wait');
    const child = Number(await firstLine(killed.frames));
    await signal(killed.pid, 'SIGNAL_SIGKILL');
    assert.equal((await collect(killed.frames)).end?.status, 'signal: killed');
    assert.ok(await isSoonGone(child));

    const trapped = await begin('trap "echo caught; exit 3" TERM; echo ready; while :; do sleep 0.05; done');
    await firstLine(trapped.frames);
    await signal(trapped.pid, 'SIGNAL_SIGTERM');
    const result = await collect(trapped.frames);
    assert.equal(result.stdout, 'caught\n');
    assert.equal(result.end?.exitCode, 3);
  });

  test('a signal that is none is unimplemented and harmless', async () => {
    const { frames, pid } = await begin('sleep 100');
    assert.equal((await signal(pid, 'SIGNAL_UNSPECIFIED')).status, 501);
    assert.equal(isAlive(pid), true);
    await signal(pid, 'SIGNAL_SIGKILL');
    await collect(frames);
  });

  test('a child that keeps the pipes open does not keep the process from ending, nor dies of it', async () => {
    const before = performance.now();
    const result = await run(
      envd.url,
      '/bin/bash',
      ['-c', '(sleep 5; echo more; sleep 0.3; echo "$BASHPID alive" > "$0") & echo done', `${envd.dir}/mark`],
      { stdin: false },
    );
    assert.ok(performance.now() - before < 4_000, 'the end came before the child ended');
    assert.equal(result.stdout, 'done\n');
    assert.equal(result.end?.status, 'exit status 0');
    await delay(5_500);
    assert.match(await readFile(`${envd.dir}/mark`, 'utf8'), /alive/, 'writing after the end was no broken pipe');
  });

  test('keepalives come when nothing else does, as often as the client wants', async () => {
    const begun = performance.now();
    const { frames, pid } = await begin('sleep 100', {}, { headers: { 'keepalive-ping-interval': '1' } });
    for (const seconds of [1, 2]) {
      assert.ok((await frames.next()).value?.message.event?.keepalive !== undefined);
      assert.ok(performance.now() - begun > seconds * 900);
    }
    await signal(pid, 'SIGNAL_SIGKILL');
    assert.equal((await collect(frames)).end?.status, 'signal: killed');
  });
});

async function firstLine(frames: AsyncIterator<Frame>): Promise<string> {
  const frame = await frames.next();
  return Buffer.from(frame.value?.message.event?.data?.stdout ?? '', 'base64')
    .toString()
    .trim();
}
