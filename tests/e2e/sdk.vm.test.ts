import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import * as current from 'e2b';
import * as older from 'e2b-2-45';
import { TestDaemon } from '../harness/daemon.ts';
import { until } from '../harness/until.ts';

/** The published SDK in two versions: 2.51 speaks the v2 routes, 2.45 the v1 routes. Same scenarios, same answers. */
const versions = [
  { name: 'e2b 2.51.0', sdk: current },
  { name: 'e2b 2.45.0', sdk: older as unknown as typeof current },
];

let daemon: TestDaemon;
before(async () => {
  daemon = await TestDaemon.start();
});
after(async () => {
  await daemon?.[Symbol.asyncDispose]();
});

for (const { name, sdk } of versions) {
  describe(name, () => {
    let sandbox: current.Sandbox;
    let options: { apiUrl: string; sandboxUrl: string; apiKey: string };

    before(async () => {
      options = { apiUrl: daemon.url, sandboxUrl: daemon.url, apiKey: daemon.apiKey };
      sandbox = await sdk.Sandbox.create('base', {
        ...options,
        timeoutMs: 300_000,
        metadata: { 'a b': 'c&d', version: name },
        envs: { FROM_CREATE: 'x=y "q" $HOME' },
      });
    });
    after(async () => {
      await sandbox?.kill();
    });

    test('a command in the foreground gives output, streams it, and sees the environment', async () => {
      let streamed = '';
      const result = await sandbox.commands.run('echo out; echo err >&2; printf %s "$FROM_CREATE"', {
        onStdout: (text) => {
          streamed += text;
        },
      });
      assert.equal(result.exitCode, 0);
      assert.equal(result.stdout, 'out\nx=y "q" $HOME');
      assert.equal(result.stderr, 'err\n');
      assert.equal(streamed, result.stdout);
    });

    test('a command runs as user in its home, or as root', async () => {
      const user = await sandbox.commands.run('id -un; pwd; echo $HOME; sudo -n id -u');
      assert.equal(user.stdout, 'user\n/home/user\n/home/user\n0\n');
      const root = await sandbox.commands.run('id -u; echo $HOME', { user: 'root' });
      assert.equal(root.stdout, '0\n/root\n');
    });

    test('a non-zero exit code comes as CommandExitError with the output', async () => {
      await assert.rejects(sandbox.commands.run('echo partly; exit 3'), (error: unknown) => {
        assert.ok(error instanceof sdk.CommandExitError);
        assert.equal(error.exitCode, 3);
        assert.equal(error.stdout, 'partly\n');
        return true;
      });
    });

    test('a command in the background takes stdin, is listed, and can be killed', async () => {
      const cat = await sandbox.commands.run('cat', { background: true, stdin: true });
      await sandbox.commands.sendStdin(cat.pid, 'hello\n');
      await until(() => cat.stdout === 'hello\n', { timeoutMs: 60_000, what: 'cat echoes' });
      const listed = await sandbox.commands.list();
      assert.ok(listed.some((process) => process.pid === cat.pid));
      assert.equal(await sandbox.commands.kill(cat.pid), true);
      await assert.rejects(cat.wait(), sdk.CommandExitError);
      assert.equal(await sandbox.commands.kill(cat.pid), false);
    });

    test('stdin ends when it is closed', async () => {
      const cat = await sandbox.commands.run('cat; echo end', { background: true, stdin: true });
      await sandbox.commands.sendStdin(cat.pid, 'abc');
      await sandbox.commands.closeStdin(cat.pid);
      assert.equal((await cat.wait()).stdout, 'abcend\n');
    });

    test('a deadline ends the command and its children', async () => {
      await assert.rejects(
        sandbox.commands.run('sleep 4242 & sleep 4242', { timeoutMs: 2_000 }),
        (error: unknown) => error instanceof sdk.TimeoutError,
      );
      await until(async () => (await sandbox.commands.run('pgrep -xf "sleep 4242" || true')).stdout === '', {
        timeoutMs: 60_000,
        what: 'no sleep is left',
      });
    });

    test('files: write, read, list, exists, rename, remove, makeDir', async () => {
      const bytes = new Uint8Array(70_000).map((_, i) => i % 251);
      const info = await sandbox.files.write('dir/data.bin', new Blob([bytes]));
      assert.equal(info.path, '/home/user/dir/data.bin');
      assert.deepEqual(await sandbox.files.read('dir/data.bin', { format: 'bytes' }), bytes);
      assert.equal(await sandbox.files.makeDir('dir/sub'), true);
      assert.equal(await sandbox.files.makeDir('dir/sub'), false);
      const names = (await sandbox.files.list('dir')).map((entry) => `${entry.type} ${entry.name}`);
      assert.deepEqual(names, ['file data.bin', 'dir sub']);
      const moved = await sandbox.files.rename('dir/data.bin', 'dir/sub/moved.bin');
      assert.equal(moved.path, '/home/user/dir/sub/moved.bin');
      assert.equal(await sandbox.files.exists('dir/data.bin'), false);
      assert.equal(await sandbox.files.exists('dir/sub/moved.bin'), true);
      await sandbox.files.remove('dir');
      assert.equal(await sandbox.files.exists('dir'), false);
      await assert.rejects(sandbox.files.read('nothing'), sdk.NotFoundError);
    });

    test('several files in one call, text as it was', async () => {
      const written = await sandbox.files.write([
        { path: 'many/one.txt', data: 'first' },
        { path: '/tmp/many two.txt', data: 'zweite Zeile €' },
      ]);
      assert.deepEqual(
        written.map((entry) => entry.path),
        ['/home/user/many/one.txt', '/tmp/many two.txt'],
      );
      assert.equal(await sandbox.files.read('/tmp/many two.txt'), 'zweite Zeile €');
    });

    test('a terminal has the asked size, follows a resize and reports its exit', async () => {
      let text = '';
      const pty = await sandbox.pty.create({
        cols: 80,
        rows: 24,
        onData: (data) => {
          text += new TextDecoder().decode(data);
        },
      });
      const type = (line: string) => sandbox.pty.sendInput(pty.pid, new TextEncoder().encode(`${line}\n`));
      await type('stty size');
      await until(() => text.includes('24 80'), { timeoutMs: 60_000, what: 'the size' });
      await sandbox.pty.resize(pty.pid, { cols: 132, rows: 43 });
      await type('stty size; echo "$TERM $(locale charmap)"');
      await until(() => text.includes('43 132'), { timeoutMs: 60_000, what: 'the new size' });
      await until(() => text.includes('xterm-256color UTF-8'), { timeoutMs: 60_000, what: 'the terminal type' });
      await type('exit');
      assert.equal((await pty.wait()).exitCode, 0);
    });

    test('a server in the sandbox is reached through the proxy', async () => {
      await sandbox.commands.run('mkdir -p www && echo served > www/index.html');
      const server = await sandbox.commands.run('cd www && python3 -m http.server 8080', { background: true });
      await until(async () => (await daemon.port(sandbox.sandboxId, 8080, '/')).status === 200, {
        timeoutMs: 60_000,
        what: 'the server listens',
      });
      const host = sandbox.getHost(8080);
      assert.ok(host.startsWith(`8080-${sandbox.sandboxId}.`));
      assert.equal(await (await daemon.port(sandbox.sandboxId, 8080, '/index.html')).text(), 'served\n');
      await server.kill();
    });

    test('its end moves, the list finds it by metadata, and it says that it runs', async () => {
      await sandbox.setTimeout(60_000);
      const info = await sandbox.getInfo();
      const left = info.endAt.getTime() - Date.now();
      assert.ok(left > 50_000 && left <= 61_000, `${left} ms left`);
      const found = await sdk.Sandbox.list({
        ...options,
        query: { metadata: { 'a b': 'c&d', version: name } },
      }).nextItems();
      assert.deepEqual(
        found.map((entry) => entry.sandboxId),
        [sandbox.sandboxId],
      );
      const none = await sdk.Sandbox.list({ ...options, query: { metadata: { 'a b': 'other' } } }).nextItems();
      assert.deepEqual(none, []);
      assert.equal(await sandbox.isRunning(), true);
    });

    test('connect finds the same sandbox, with the same files and never a shorter life', async () => {
      await sandbox.files.write('kept', 'yes');
      await sandbox.setTimeout(200_000);
      const again = await sdk.Sandbox.connect(sandbox.sandboxId, { ...options, timeoutMs: 10_000 });
      assert.equal(await again.files.read('kept'), 'yes');
      assert.ok((await again.getInfo()).endAt.getTime() - Date.now() > 150_000);
    });

    test('kill ends it: true once, then false, and it does not run', async () => {
      const short = await sdk.Sandbox.create('base', { ...options, timeoutMs: 60_000 });
      assert.equal(await short.kill(), true);
      assert.equal(await short.kill(), false);
      assert.equal(await short.isRunning(), false);
      await assert.rejects(sdk.Sandbox.connect(short.sandboxId, options), sdk.SandboxNotFoundError);
    });

    test('a template that does not exist is told by name', async () => {
      await assert.rejects(
        sdk.Sandbox.create('no-such-template', options),
        (error: unknown) => error instanceof Error && error.message.includes("template 'no-such-template' not found"),
      );
    });
  });
}
