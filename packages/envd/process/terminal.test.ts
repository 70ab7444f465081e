import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type TestEnvd, testEnvd } from '../testing/envd.ts';
import { isSoonGone } from '../testing/processes.ts';
import { collect, type Frame, run, start, unary } from '../testing/rpc-client.ts';

let envd: TestEnvd;
before(async () => {
  envd = await testEnvd();
});
after(() => envd[Symbol.asyncDispose]());

const SIZE = { size: { cols: 80, rows: 24 } };
const ENVS = { TERM: 'xterm-256color', PS1: '$ ', HISTFILE: '' };

/** A shell on a terminal, fed and read like a person does it. */
class Shell {
  readonly process: { pid: number };
  readonly #frames: AsyncGenerator<Frame>;
  #seen = '';
  #bytes: Buffer[] = [];

  private constructor(frames: AsyncGenerator<Frame>, pid: number) {
    this.#frames = frames;
    this.process = { pid };
  }

  static async open(cmd = '/bin/bash', args = ['--norc', '--noprofile', '-i'], options = {}): Promise<Shell> {
    const frames = start(envd.url, cmd, args, { pty: SIZE, envs: ENVS }, options);
    return new Shell(frames, (await frames.next()).value?.message.event?.start?.pid ?? 0);
  }

  async type(text: string): Promise<void> {
    const input = { pty: Buffer.from(text).toString('base64') };
    const { status } = await unary(envd.url, 'process.Process/SendInput', { process: this.process, input });
    assert.equal(status, 200);
  }

  /** Reads on until the text has come; gives what came up to it. */
  async until(text: string): Promise<string> {
    while (!this.#seen.includes(text)) {
      const { value, done } = await this.#frames.next();
      assert.ok(!done, `ended before '${text}': ${JSON.stringify(this.#seen.slice(-500))}`);
      this.#bytes.push(Buffer.from(value.message.event?.data?.pty ?? '', 'base64'));
      this.#seen = Buffer.concat(this.#bytes).toString();
    }
    const end = this.#seen.indexOf(text) + text.length;
    const before = this.#seen.slice(0, end);
    this.#bytes = [Buffer.from(this.#seen.slice(end))];
    this.#seen = this.#seen.slice(end);
    return before;
  }

  rest() {
    return collect(this.#frames);
  }
}

test('a shell knows the size, hears of a new one, and ends with its exit code', async () => {
  const shell = await Shell.open();
  await shell.type('stty size\n');
  await shell.until('24 80');
  await shell.type('trap "echo resized" WINCH\n');
  await unary(envd.url, 'process.Process/Update', { process: shell.process, pty: { size: { cols: 132, rows: 43 } } });
  await shell.type('\n');
  await shell.until('resized');
  await shell.type('stty size\n');
  await shell.until('43 132');
  await shell.type('echo "$TERM <$(locale charmap)>"; tty\n');
  await shell.until('xterm-256color <UTF-8>');
  await shell.until('/dev/pts/');
  await shell.type('exit 7\n');
  const { end, endFrames } = await shell.rest();
  assert.equal(end?.exitCode, 7);
  assert.equal(end?.exited, true);
  assert.equal(endFrames, 1);
});

test('Ctrl-C ends what runs in the foreground, not the shell', async () => {
  const shell = await Shell.open();
  await shell.type('echo "a$((1))"; sleep 99\n');
  await shell.until('a1');
  await new Promise((resolve) => setTimeout(resolve, 200));
  await shell.type('\x03');
  await shell.type('echo "still $((40 + 2))"\n');
  await shell.until('still 42');
  await shell.type('exit\n');
  assert.ok((await shell.rest()).end?.exited);
});

test('200 KB of pasted lines arrive in order', async () => {
  const lines = Array.from(
    { length: 4000 },
    (_, index) => `line ${String(index).padStart(6, '0')} ${'x'.repeat(38)}\n`,
  );
  const shell = await Shell.open('/bin/bash', ['-c', 'stty -echo; echo ready; sha256sum']);
  await shell.until('ready');
  await shell.type(lines.join(''));
  await shell.type('\x04');
  const { createHash } = await import('node:crypto');
  await shell.until(createHash('sha256').update(lines.join('')).digest('hex'));
  assert.equal((await shell.rest()).end?.status, 'exit status 0');
});

test('a character that is cut by a pause is whole in the end', async () => {
  const result = await run(envd.url, '/bin/bash', ['-c', "printf '\\xe2\\x82'; sleep 0.3; printf '\\xac'"], {
    pty: SIZE,
  });
  assert.equal(result.pty, '€');
});

test('no byte of a flood is lost, up to the last one before the exit', async () => {
  const result = await run(envd.url, '/bin/bash', ['-c', 'stty -opost; seq 300000; printf end; exit 9'], { pty: SIZE });
  const expected = `${Array.from({ length: 300_000 }, (_, i) => i + 1).join('\n')}\nend`;
  assert.equal(result.pty.length, expected.length);
  assert.ok(result.pty === expected);
  assert.equal(result.end?.exitCode, 9);
});

test('the terminal belongs to the user, who can open it again', async () => {
  const script = 'id -un; echo direct > /dev/tty; stat -c "%U %a" "$(tty)"';
  const { pty } = await run(envd.url, '/bin/bash', ['-c', script], { pty: SIZE }, { user: 'nobody' });
  assert.equal(pty, 'nobody\r\ndirect\r\nnobody 620\r\n');
});

test('a killed shell takes its group along and is reported as killed', async () => {
  const shell = await Shell.open('/bin/bash', ['-c', 'sleep 99 & echo "child $!;"; wait']);
  const text = await shell.until(';');
  const child = Number(/child (\d+);/.exec(text)?.[1]);
  await unary(envd.url, 'process.Process/SendSignal', { process: shell.process, signal: 'SIGNAL_SIGKILL' });
  const { end } = await shell.rest();
  assert.deepEqual(end, { exitCode: -1, exited: false, status: 'signal: killed', error: 'signal: killed' });
  assert.ok(await isSoonGone(child));
});

test('a job in the background that ignores the hang-up does not keep the session open', async () => {
  const before = performance.now();
  const result = await run(envd.url, '/bin/bash', ['-c', 'trap "" HUP; sleep 30 & echo "$!;"'], { pty: SIZE });
  assert.ok(performance.now() - before < 20_000);
  assert.equal(result.end?.status, 'exit status 0');
  const [, job] = /^(\d+);\r\n$/.exec(result.pty) ?? [];
  assert.ok(job !== undefined, result.pty);
  process.kill(Number(job), 'SIGKILL');
});

test('stdin and its end are not for terminals', async () => {
  const shell = await Shell.open();
  const input = { stdin: btoa('x') };
  const wrong = await unary(envd.url, 'process.Process/SendInput', { process: shell.process, input });
  assert.equal(wrong.body.code, 'internal');
  const close = await unary(envd.url, 'process.Process/CloseStdin', { process: shell.process });
  assert.equal(close.body.code, 'unknown');
  await shell.type('exit\n');
  await shell.rest();
});

test('a missing program is not_found with a terminal, too', async () => {
  assert.equal((await run(envd.url, 'nosuch', [], { pty: SIZE })).error?.code, 'not_found');
  assert.equal((await run(envd.url, '/etc/passwd', [], { pty: SIZE })).error?.code, 'permission_denied');
});
