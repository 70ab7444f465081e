import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { until } from '../../harness/until.ts';
import type { Group } from '../support/scenario.ts';
import type { CliBed } from './bed.ts';

export const commands: Group<CliBed> = {
  title: 'Commands',
  scenarios: [
    {
      name: 'sandbox exec: words, output, exit code',
      async run(bed) {
        const id = await bed.sandboxId();
        const result = await bed.run([
          'sandbox',
          'exec',
          id,
          'sh',
          '-c',
          'echo "[$1]"; echo err >&2; exit 5',
          'sh',
          'a b',
        ]);
        assert.deepEqual([result.stdout, result.stderr.split('\n')[0], result.code], ['[a b]\n', 'err', 5]);
      },
    },
    {
      name: 'sandbox exec --user --cwd --env',
      async run(bed) {
        const options = ['--user', 'root', '--cwd', '/tmp', '--env', 'A=x=y'];
        const result = await bed.ok([
          'sandbox',
          'exec',
          ...options,
          await bed.sandboxId(),
          'echo "$(id -u) $(pwd) $A"',
        ]);
        assert.equal(result.stdout, '0 /tmp x=y\n');
      },
    },
    {
      name: 'sandbox exec with a pipe as its input',
      async run(bed) {
        const id = await bed.sandboxId();
        assert.equal((await bed.ok(['sandbox', 'exec', id, 'cat'], { input: 'abc' })).stdout, 'abc');
        const data = randomBytes(500_000);
        const { stdout } = await bed.ok(['sandbox', 'exec', id, 'sha256sum'], { input: data });
        assert.equal(stdout.split(' ')[0], createHash('sha256').update(data).digest('hex'));
      },
    },
    {
      name: 'sandbox exec --background',
      async run(bed) {
        const id = await bed.sandboxId();
        const { stderr } = await bed.ok([
          'sandbox',
          'exec',
          '--background',
          id,
          'sleep 1; echo done > of-cli; sleep 50',
        ]);
        assert.match(stderr, /^\d+\n$/);
        const done = async () => (await bed.run(['sandbox', 'exec', id, 'cat of-cli'])).stdout === 'done\n';
        await until(done, { timeoutMs: 60_000, what: 'it goes on after the CLI has ended' });
      },
    },
    {
      name: 'sandbox exec: a user, a folder, a sandbox that are not there',
      async run(bed) {
        const id = await bed.sandboxId();
        for (const [words, message] of [
          [['--user', 'ghost', id, 'id'], /AuthenticationError.*invalid username: 'ghost'/],
          [['--cwd', '/nowhere', id, 'id'], /InvalidArgumentError.*cwd '\/nowhere' does not exist/],
          [['nonexistingsandbox', 'id'], /SandboxNotFoundError/],
        ] as const) {
          const result = await bed.run(['sandbox', 'exec', ...words]);
          assert.equal(result.code, 1, words.join(' '));
          assert.match(result.stderr, message);
        }
      },
    },
    {
      name: 'sandbox connect: a terminal of the size of this one',
      async run(bed) {
        const id = await bed.sandboxId();
        const typed = ['stty size; echo "$TERM $(id -un)"', 'exit'];
        const result = await bed.inTerminal(['sandbox', 'connect', id], typed);
        assert.equal(result.code, 0, result.stdout + result.stderr);
        assert.match(result.stdout, /30 100/);
        assert.match(result.stdout, /xterm-256color user/);
        assert.match(result.stdout, /Closing terminal connection/);
      },
    },
    {
      name: 'sandbox create with a terminal: it ends soon after the terminal',
      async run(bed) {
        const typed = ['echo al$((40+2))ive', 'exit'];
        const result = await bed.inTerminal(['sandbox', 'create', 'base', '--user', 'root', '--cwd', '/tmp'], typed);
        assert.equal(result.code, 0, result.stdout + result.stderr);
        assert.match(result.stdout, /al42ive/);
        const id = /with sandbox ID (i[a-z0-9]{20})/.exec(result.stdout)?.[1];
        assert.ok(id);
        const gone = async () => (await bed.host.daemon.api('GET', `/sandboxes/${id}`)).status === 404;
        await until(gone, { timeoutMs: 60_000, what: 'it has ended' });
      },
    },
  ],
};
