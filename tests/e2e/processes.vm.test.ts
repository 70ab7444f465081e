import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { CommandExitError, Sandbox, TimeoutError } from 'e2b';
import { createSandbox, shell } from '../harness/client.ts';
import { TestDaemon } from '../harness/daemon.ts';
import { until } from '../harness/until.ts';

const SOAK = process.env.AENV_SOAK === '1';

let daemon: TestDaemon;
let sandbox: Sandbox;
before(async () => {
  daemon = await TestDaemon.start();
  sandbox = await createSandbox(daemon);
});
after(async () => {
  await daemon?.[Symbol.asyncDispose]();
});

class Terminal {
  readonly pid: number;
  readonly #chunks: Uint8Array[];
  readonly #wait: () => Promise<unknown>;

  private constructor(pid: number, chunks: Uint8Array[], wait: () => Promise<unknown>) {
    this.pid = pid;
    this.#chunks = chunks;
    this.#wait = wait;
  }

  static async open(envs: Record<string, string> = {}): Promise<Terminal> {
    const chunks: Uint8Array[] = [];
    const pty = await sandbox.pty.create({
      cols: 80,
      rows: 24,
      envs,
      timeoutMs: 0,
      onData: (data) => void chunks.push(data),
    });
    return new Terminal(pty.pid, chunks, () => pty.wait());
  }

  get text(): string {
    return Buffer.concat(this.#chunks).toString();
  }

  async type(text: string): Promise<void> {
    await sandbox.pty.sendInput(this.pid, new TextEncoder().encode(text));
  }

  async see(what: string | RegExp): Promise<void> {
    await until(() => (typeof what === 'string' ? this.text.includes(what) : what.test(this.text)), {
      timeoutMs: 60_000,
      what: `the terminal shows ${what}`,
    });
  }

  async end(): Promise<unknown> {
    return await this.#wait().catch((error: unknown) => error);
  }
}

test('a paste of 200 KB reaches the program in a terminal whole and in order', async () => {
  const terminal = await Terminal.open();
  // Before the terminal is raw it takes lines of 4096 bytes only. The echo of the command itself does not show the mark.
  await terminal.type("stty raw -echo; printf 'ra%s\\n' w; head -c 200000 | sha256sum; stty sane\n");
  await terminal.see('raw\n');
  const paste = randomBytes(150_000).toString('base64').slice(0, 200_000);
  for (let at = 0; at < paste.length; at += 20_000) await terminal.type(paste.slice(at, at + 20_000));
  await terminal.see(createHash('sha256').update(paste).digest('hex'));
  await terminal.type('exit\n');
  await terminal.end();
});

test('Ctrl-C ends only the program in the foreground, and the exit code of the shell is told', async () => {
  const terminal = await Terminal.open();
  await terminal.type('sleep 99\n');
  await until(async () => (await shell(sandbox, 'pgrep -x sleep')) !== '', { timeoutMs: 60_000, what: 'sleep runs' });
  await terminal.type('\x03');
  await terminal.type('echo still $((40+2))\n');
  await terminal.see('still 42');
  assert.equal(await shell(sandbox, 'pgrep -x sleep'), '');
  await terminal.type('exit 7\n');
  const end = await terminal.end();
  assert.ok(end instanceof CommandExitError);
  assert.equal(end.exitCode, 7);
});

test('a character cut between two writes arrives whole', async () => {
  const terminal = await Terminal.open();
  await terminal.type("printf '[\\xe2\\x82'; sleep 1; printf '\\xac]\\n'\n");
  await terminal.see('[€]');
  await terminal.type('exit\n');
  await terminal.end();
});

test('without stdin a command sees the end of its input at once', async () => {
  const start = Date.now();
  const result = await sandbox.commands.run('cat; echo done');
  assert.equal(result.stdout, 'done\n');
  assert.ok(Date.now() - start < 20_000);
});

test('a large stdin arrives whole', async () => {
  const size = SOAK ? 64 * 1024 * 1024 : 4 * 1024 * 1024;
  const text = randomBytes((size * 3) / 4).toString('base64');
  const sum = await sandbox.commands.run('sha256sum', { background: true, stdin: true, timeoutMs: 600_000 });
  for (let at = 0; at < text.length; at += 512 * 1024) {
    await sandbox.commands.sendStdin(sum.pid, text.slice(at, at + 512 * 1024));
  }
  await sandbox.commands.closeStdin(sum.pid);
  const { stdout } = await sum.wait();
  assert.equal(stdout.split(' ')[0], createHash('sha256').update(text).digest('hex'));
});

test('a signal is told as such, an exit code is the low byte', async () => {
  const codes: [string, number, string | undefined][] = [
    ['kill -9 $$', -1, 'signal: killed'],
    ['exit 300', 44, 'exit status 44'],
    ['nosuchcommand', 127, 'exit status 127'],
    ['/etc/passwd', 126, 'exit status 126'],
  ];
  for (const [command, code, error] of codes) {
    await assert.rejects(sandbox.commands.run(command), (thrown: unknown) => {
      assert.ok(thrown instanceof CommandExitError, String(thrown));
      assert.equal(thrown.exitCode, code, command);
      assert.equal(thrown.error, error, command);
      return true;
    });
  }
});

test('text with quotes, dollars and line ends is passed on exactly', async () => {
  const { stdout } = await sandbox.commands.run(`cat <<'EOF'\na "b" 'c' $HOME \`x\` \\n\n\tend\nEOF`);
  assert.equal(stdout, `a "b" 'c' $HOME \`x\` \\n\n\tend\n`);
});

test('a deadline says so in time and leaves no process', async () => {
  const start = Date.now();
  await assert.rejects(sandbox.commands.run('sleep 777 & sleep 777', { timeoutMs: 2_000 }), TimeoutError);
  assert.ok(Date.now() - start < 20_000, `took ${Date.now() - start} ms`);
  await until(async () => (await shell(sandbox, 'pgrep -xf "sleep 777"')) === '', {
    timeoutMs: 60_000,
    what: 'all of it is gone',
  });
});

/** A job whose client has left. */
let leftJob: { readonly pid: number; readonly since: number };
test('a client leaves its job', async () => {
  const handle = await sandbox.commands.run('for i in $(seq 600); do echo n$i; sleep 0.5; done', {
    background: true,
    timeoutMs: 0,
  });
  await handle.disconnect();
  leftJob = { pid: handle.pid, since: Date.now() };
});

test('orphans are reaped: no zombie is left', async () => {
  await shell(sandbox, 'for i in $(seq 100); do (sh -c "sleep 0.1 &"); done');
  await until(async () => (await shell(sandbox, 'ps -eo stat | grep -c ^Z')).trim() === '0', {
    timeoutMs: 60_000,
    what: 'no zombies',
  });
});

test('many quick commands each give their own exit code', async () => {
  const count = SOAK ? 1000 : 60;
  for (let at = 0; at < count; at += 4) {
    await Promise.all(
      [0, 1, 2, 3].map(async (offset) => {
        const code = (at + offset) % 100;
        const result = await sandbox.commands.run(`exit ${code}`).catch((error: unknown) => error as CommandExitError);
        assert.equal(result.exitCode, code);
      }),
    );
  }
});

test('users: root, the default one, and one that does not exist', async () => {
  assert.equal((await sandbox.commands.run('id -un; echo $HOME', { user: 'root' })).stdout, 'root\n/root\n');
  assert.equal((await sandbox.commands.run('id -un; echo $HOME; pwd')).stdout, 'user\n/home/user\n/home/user\n');
  await assert.rejects(sandbox.commands.run('id', { user: 'ghost' }), /invalid username: 'ghost'/);
  await assert.rejects(sandbox.files.write('x', 'y', { user: 'ghost' }), /ghost/);
  const written = await sandbox.files.write('owned', 'x', { user: 'root' });
  assert.equal(written.path, '/root/owned');
});

test('variables are byte-exact in commands and terminals, an override counts once', async () => {
  const envs = { A: 'x=y', B: 'l1\nl2', C: '$HOME "q"', D: "it's" };
  await using own = await createSandbox(daemon, { envs });
  const dump = `python3 -c 'import os,json; print(json.dumps({k: os.environ.get(k) for k in "ABCD"}))'`;
  assert.deepEqual(JSON.parse((await own.commands.run(dump)).stdout), envs);
  assert.deepEqual(JSON.parse((await own.commands.run(dump, { envs: { A: 'once' } })).stdout), { ...envs, A: 'once' });
  assert.deepEqual(JSON.parse((await own.commands.run(dump)).stdout), envs);
  const chunks: Uint8Array[] = [];
  const pty = await own.pty.create({ cols: 200, rows: 24, onData: (data) => void chunks.push(data) });
  await own.pty.sendInput(pty.pid, new TextEncoder().encode(`${dump} > pty.json; exit\n`));
  await pty.wait();
  assert.deepEqual(JSON.parse(await own.files.read('pty.json')), envs);
});

test('a flood of output to a client that does read loses nothing', async () => {
  const megabytes = SOAK ? 200 : 8;
  let bytes = 0;
  const result = await sandbox.commands.run(`head -c ${megabytes}M /dev/zero | tr '\\0' x; exit 0`, {
    timeoutMs: 600_000,
    onStdout: (text) => {
      bytes += text.length;
    },
  });
  assert.equal(result.exitCode, 0);
  assert.equal(bytes, megabytes * 1024 * 1024);
});

test('a job outlives its client, another one joins it, and killing it takes its children', async () => {
  const away = SOAK ? 180_000 : 20_000;
  await delay(Math.max(0, leftJob.since + away - Date.now()));
  let text = '';
  const joined = await sandbox.commands.connect(leftJob.pid, {
    timeoutMs: 0,
    onStdout: (data) => {
      text += data;
    },
  });
  await until(() => /n\d+\n.*n\d+\n/s.test(text), { timeoutMs: 60_000, what: 'the output goes on' });
  assert.ok(Number(/n(\d+)/.exec(text)?.[1]) > 10, 'it went on meanwhile');
  assert.equal(await joined.kill(), true);
  await joined.wait().catch(() => {});
  await assert.rejects(sandbox.commands.connect(leftJob.pid + 100_000));
});

test('a process outlives a crash of the daemon: its client is told of the break, and joins it again', async () => {
  const own = await createSandbox(daemon);
  const job = await own.commands.run('read -r line; echo "after $line"', {
    ...{ background: true, stdin: true, timeoutMs: 0 },
  });
  await daemon.crash();
  await daemon.launch();
  await assert.rejects(job.wait());
  const again = await Sandbox.connect(own.sandboxId, {
    ...{ apiUrl: daemon.url, sandboxUrl: daemon.url, apiKey: daemon.apiKey, requestTimeoutMs: 60_000 },
  });
  const joined = await again.commands.connect(job.pid, { timeoutMs: 60_000 });
  await again.commands.sendStdin(job.pid, 'the crash\n');
  assert.equal((await joined.wait()).stdout, 'after the crash\n');
});
