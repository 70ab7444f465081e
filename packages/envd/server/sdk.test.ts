import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { ENVD_VERSION } from '@aenv/contracts/envd/version.ts';
import {
  AuthenticationError,
  CommandExitError,
  FileNotFoundError,
  FileType,
  InvalidArgumentError,
  Sandbox,
  TimeoutError,
} from 'e2b';
import { Sandbox as OlderSandbox } from 'e2b-2-45';
import { type TestEnvd, testEnvd } from '../testing/envd.ts';

// The published clients are the judges of the protocol. Only the classes that talk to envd are used.
const TOKEN = 'sdk-token';
let envd: TestEnvd;
let dir: string;
before(async () => {
  envd = await testEnvd();
  dir = envd.dir;
  // A user without a profile: login shells of this host's root may do anything, slowly.
  await envd.init({ accessToken: TOKEN, sandboxId: 'ix', defaultUser: 'nobody' });
});
after(() => envd[Symbol.asyncDispose]());

for (const [name, Client] of [
  ['2.51', Sandbox],
  ['2.45', OlderSandbox as unknown as typeof Sandbox],
] as const) {
  suite(`e2b ${name}`, { concurrency: true }, () => {
    const open = (token = TOKEN) =>
      new Client({
        sandboxId: 'ix',
        envdVersion: ENVD_VERSION,
        envdAccessToken: token,
        sandboxUrl: envd.url,
        apiKey: `e2b_${'0'.repeat(40)}`,
      });

    test('commands', async () => {
      const { commands } = open();
      assert.equal((await commands.run('echo "hello $USER"')).stdout, 'hello nobody\n');
      const seen: string[] = [];
      const failing = commands.run('echo out; echo err >&2; exit 3', { onStdout: (text) => void seen.push(text) });
      await assert.rejects(failing, (error) => {
        assert.ok(error instanceof CommandExitError || (error as Error).name === 'CommandExitError');
        const { exitCode, stdout, stderr } = error as CommandExitError;
        assert.deepEqual([exitCode, stdout, stderr], [3, 'out\n', 'err\n']);
        return true;
      });
      assert.deepEqual(seen, ['out\n']);
      assert.equal((await commands.run('cat')).stdout, '', 'no stdin asked for is no stdin');
      assert.equal(
        (await commands.run('id -un; pwd; echo $A', { user: 'daemon', cwd: '/tmp', envs: { A: 'x=y' } })).stdout,
        'daemon\n/tmp\nx=y\n',
      );
    });

    test('background, stdin, list, kill, connect', async () => {
      const { commands } = open();
      const cat = await commands.run('cat', { background: true, stdin: true });
      await commands.sendStdin(cat.pid, 'typed');
      await commands.closeStdin(cat.pid);
      assert.equal((await cat.wait()).stdout, 'typed');
      const patient = await commands.run('read -r line; echo "later $line"', { background: true, stdin: true });
      assert.ok((await commands.list()).some(({ pid }) => pid === patient.pid));
      await patient.disconnect();
      const again = await commands.connect(patient.pid);
      await commands.sendStdin(patient.pid, 'on\n');
      assert.equal((await again.wait()).stdout, 'later on\n');
      const victim = await commands.run('sleep 99', { background: true });
      assert.equal(await commands.kill(victim.pid), true);
      await assert.rejects(victim.wait(), /signal: killed/);
      assert.equal(await commands.kill(victim.pid), false);
    });

    test('the deadline of a command is a TimeoutError', async () => {
      await assert.rejects(open().commands.run('sleep 99 & sleep 99', { timeoutMs: 400 }), (error) => {
        assert.equal((error as Error).name, TimeoutError.name);
        return true;
      });
    });

    test('terminal', async () => {
      const { pty } = open();
      let text = '';
      const onData = (bytes: Uint8Array) => {
        text += Buffer.from(bytes);
      };
      const shell = await pty.create({ cols: 80, rows: 24, onData });
      await pty.sendInput(shell.pid, new TextEncoder().encode('stty size\n'));
      while (!text.includes('24 80')) await new Promise((resolve) => setTimeout(resolve, 20));
      await pty.resize(shell.pid, { cols: 132, rows: 43 });
      await pty.sendInput(shell.pid, new TextEncoder().encode('stty size; echo $TERM; exit\n'));
      assert.equal((await shell.wait()).exitCode, 0);
      assert.match(text, /43 132/);
      assert.match(text, /xterm-256color/);
    });

    test('files', async () => {
      const { files } = open();
      const root = `${dir}/${name}`;
      const info = await files.write(`${root}/sub/é.txt`, 'text');
      assert.deepEqual(
        { ...info, metadata: undefined },
        { name: 'é.txt', path: `${root}/sub/é.txt`, type: FileType.FILE, metadata: undefined },
      );
      assert.equal(await files.read(`${root}/sub/é.txt`), 'text');
      await files.write([
        { path: `${root}/1`, data: 'one' },
        { path: `${root}/2`, data: new Blob(['two']) },
      ]);
      await files.write(`${root}/stream`, new Blob(['streamed']).stream());
      assert.equal(await files.read(`${root}/stream`, { gzip: true }), 'streamed');
      await files.write(`${root}/empty`, '');
      assert.equal(await files.read(`${root}/empty`), '');
      assert.deepEqual(
        (await files.list(root)).map((entry) => [entry.name, entry.type]),
        [
          ['1', 'file'],
          ['2', 'file'],
          ['empty', 'file'],
          ['stream', 'file'],
          ['sub', 'dir'],
        ],
      );
      assert.equal(await files.exists(`${root}/1`), true);
      assert.equal(await files.exists(`${root}/9`), false);
      assert.equal(await files.makeDir(`${root}/new/dir`), true);
      assert.equal(await files.makeDir(`${root}/new/dir`), false);
      assert.equal((await files.rename(`${root}/1`, `${root}/new/one`)).path, `${root}/new/one`);
      await files.remove(`${root}/new`);
      assert.equal(await files.exists(`${root}/new/one`), false);
      assert.equal((await files.getInfo(`${root}/2`)).size, 3);
    });

    test('errors have their class', async () => {
      const { files } = open();
      const isA = (type: { name: string }) => (error: unknown) => (error as Error).constructor.name === type.name;
      await assert.rejects(files.read(`${dir}/missing`), isA(FileNotFoundError));
      await assert.rejects(files.list(`${dir}/missing`), isA(FileNotFoundError));
      await assert.rejects(files.read(dir), isA(InvalidArgumentError));
      await assert.rejects(files.write(`${dir}/${'n'.repeat(256)}`, ''), isA(InvalidArgumentError));
      await assert.rejects(files.read('/etc/hostname', { user: 'ghost' as 'root' }), isA(AuthenticationError));
      await assert.rejects(open().commands.run('true', { user: 'ghost' as 'root' }), isA(AuthenticationError));
      await assert.rejects(open('wrong').commands.run('true'), isA(AuthenticationError));
      await assert.rejects(open().commands.run('true', { cwd: '/no/such' }), isA(InvalidArgumentError));
    });

    test('is it running', async () => {
      assert.equal(await open().isRunning(), true);
    });
  });
}
