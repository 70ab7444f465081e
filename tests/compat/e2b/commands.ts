import assert from 'node:assert/strict';
import { until } from '../../harness/until.ts';
import type { Group } from '../support/scenario.ts';
import { ENVS, type SdkBed } from './bed.ts';

const DUMP = `python3 -c 'import os,json; print(json.dumps({k: os.environ.get(k) for k in "ABCD"}))'`;

/** Takes the parts of a stream and gives them as one text. */
function collector() {
  const parts: string[] = [];
  return { take: (part: string) => void parts.push(part), text: () => parts.join('') };
}

export const commands: Group<SdkBed> = {
  title: 'Commands',
  scenarios: [
    {
      name: 'run in the foreground: output whole and streamed, by both channels',
      async run(bed) {
        const sandbox = await bed.main();
        const [out, err] = [collector(), collector()];
        const result = await sandbox.commands.run('echo "out €"; echo err >&2', {
          onStdout: out.take,
          onStderr: err.take,
        });
        assert.deepEqual([result.exitCode, result.stdout, result.stderr], [0, 'out €\n', 'err\n']);
        assert.deepEqual([out.text(), err.text()], ['out €\n', 'err\n']);
      },
    },
    {
      name: 'variables of the sandbox, byte for byte, and of one call',
      async run(bed) {
        const sandbox = await bed.main();
        assert.deepEqual(JSON.parse((await sandbox.commands.run(DUMP)).stdout), ENVS);
        const once = await sandbox.commands.run(DUMP, { envs: { A: 'once' } });
        assert.deepEqual(JSON.parse(once.stdout), { ...ENVS, A: 'once' });
        assert.deepEqual(JSON.parse((await sandbox.commands.run(DUMP)).stdout), ENVS);
      },
    },
    {
      name: 'user and working directory: the default ones, root, another folder',
      async run(bed) {
        const sandbox = await bed.main();
        const own = await sandbox.commands.run('id -un; pwd; echo $HOME; sudo -n id -u');
        assert.equal(own.stdout, 'user\n/home/user\n/home/user\n0\n');
        const root = await sandbox.commands.run('id -un; pwd; echo $HOME', { user: 'root', cwd: '/tmp' });
        assert.equal(root.stdout, 'root\n/tmp\n/root\n');
      },
    },
    {
      name: 'an exit code other than 0: CommandExitError with the output',
      async run(bed) {
        const sandbox = await bed.main();
        await assert.rejects(sandbox.commands.run('echo partly; echo bad >&2; exit 3'), (error: unknown) => {
          assert.ok(error instanceof bed.sdk.CommandExitError);
          assert.deepEqual([error.exitCode, error.stdout, error.stderr], [3, 'partly\n', 'bad\n']);
          assert.equal(error.error, 'exit status 3');
          return true;
        });
      },
    },
    {
      name: 'run in the background, list, kill: true once, then false',
      async run(bed) {
        const sandbox = await bed.main();
        const sleep = await sandbox.commands.run('sleep 1000', { background: true, timeoutMs: 0 });
        const listed = (await sandbox.commands.list()).find(({ pid }) => pid === sleep.pid);
        assert.deepEqual([listed?.cmd, listed?.args], ['/bin/bash', ['-l', '-c', 'sleep 1000']]);
        assert.equal(await sandbox.commands.kill(sleep.pid), true);
        await assert.rejects(sleep.wait(), (error: unknown) => {
          assert.ok(error instanceof bed.sdk.CommandExitError);
          assert.deepEqual([error.exitCode, error.error], [-1, 'signal: killed']);
          return true;
        });
        assert.equal(await sandbox.commands.kill(sleep.pid), false);
        assert.ok(!(await sandbox.commands.list()).some(({ pid }) => pid === sleep.pid));
      },
    },
    {
      name: 'a command lives on when its client goes, and another connects by its pid',
      async run(bed) {
        const sandbox = await bed.main();
        const job = 'for i in $(seq 1000); do echo n$i; sleep 0.2; done';
        const first = await sandbox.commands.run(job, { background: true, timeoutMs: 0 });
        await first.disconnect();
        const output = collector();
        const second = await sandbox.commands.connect(first.pid, {
          timeoutMs: 0,
          onStdout: output.take,
        });
        assert.equal(second.pid, first.pid);
        await until(() => /n\d+\nn\d+\n/.test(output.text()), { timeoutMs: 60_000, what: 'the output goes on' });
        assert.equal(await second.kill(), true);
        await assert.rejects(second.wait(), bed.sdk.CommandExitError);
        await assert.rejects(sandbox.commands.connect(999_999), bed.sdk.NotFoundError);
      },
    },
    {
      name: 'send to stdin',
      async run(bed) {
        const sandbox = await bed.main();
        const cat = await sandbox.commands.run('head -n 2', { background: true, stdin: true });
        await sandbox.commands.sendStdin(cat.pid, 'hello ');
        await sandbox.commands.sendStdin(cat.pid, 'wörld\nbye\n');
        assert.equal((await cat.wait()).stdout, 'hello wörld\nbye\n');
        await assert.rejects(sandbox.commands.sendStdin(cat.pid, 'late'), bed.sdk.NotFoundError);
      },
    },
    {
      name: 'close stdin: the command sees its end',
      since: '2.23.0',
      async run(bed) {
        const sandbox = await bed.main();
        const cat = await sandbox.commands.run('cat; echo end', { background: true, stdin: true });
        await sandbox.commands.sendStdin(cat.pid, 'abc');
        await sandbox.commands.closeStdin(cat.pid);
        assert.equal((await cat.wait()).stdout, 'abcend\n');
        assert.equal((await sandbox.commands.run('cat; echo none')).stdout, 'none\n');
      },
    },
    {
      name: 'a deadline ends the command and what it started: TimeoutError',
      async run(bed) {
        const sandbox = await bed.main();
        const command = 'sleep 4242 & sleep 4242';
        await assert.rejects(sandbox.commands.run(command, { timeoutMs: 1_500 }), bed.sdk.TimeoutError);
        const sleeping = async () => (await sandbox.commands.run('pgrep -xf "sleep 4242" || true')).stdout;
        await until(async () => (await sleeping()) === '', { timeoutMs: 60_000, what: 'no sleep is left' });
      },
    },
    {
      name: '1 MiB of output arrives whole',
      async run(bed) {
        const sandbox = await bed.main();
        const output = collector();
        await sandbox.commands.run("head -c 1M /dev/zero | tr '\\0' x", {
          onStdout: output.take,
        });
        assert.equal(output.text().length, 2 ** 20);
      },
    },
  ],
};
