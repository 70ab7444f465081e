import assert from 'node:assert/strict';
import { until } from '../../harness/until.ts';
import type { Group } from '../support/scenario.ts';
import type { Sandbox, SdkBed } from './bed.ts';

type CreateOptions = Parameters<Sandbox['pty']['create']>[0];

/** A terminal of which all output is kept. */
async function open(sandbox: Sandbox, options: Partial<CreateOptions> = {}) {
  const chunks: Uint8Array[] = [];
  const onData = (data: Uint8Array) => void chunks.push(data);
  const handle = await sandbox.pty.create({ cols: 80, rows: 24, timeoutMs: 0, ...options, onData });
  const text = () => Buffer.concat(chunks).toString();
  return {
    handle,
    text,
    type: (line: string) => sandbox.pty.sendInput(handle.pid, new TextEncoder().encode(line)),
    see: (what: string) =>
      until(() => text().includes(what), { timeoutMs: 60_000, what: `the terminal shows ${what}` }),
  };
}

export const terminal: Group<SdkBed> = {
  title: 'Terminals',
  scenarios: [
    {
      name: 'create, type, resize, exit code',
      async run(bed) {
        const sandbox = await bed.main();
        const pty = await open(sandbox);
        await pty.type('stty size; echo "$TERM"\n');
        await pty.see('24 80');
        await pty.see('xterm-256color');
        await sandbox.pty.resize(pty.handle.pid, { cols: 132, rows: 43 });
        await pty.type('stty size; echo "€uro"\n');
        await pty.see('43 132');
        await pty.see('€uro');
        await pty.type('exit 7\n');
        await assert.rejects(pty.handle.wait(), (error: unknown) => {
          assert.ok(error instanceof bed.sdk.CommandExitError);
          assert.equal(error.exitCode, 7);
          return true;
        });
      },
    },
    {
      name: 'user, folder and variables of a terminal',
      async run(bed) {
        const pty = await open(await bed.main(), { user: 'root', cwd: '/tmp', envs: { OWN: 'a b' }, cols: 200 });
        await pty.type('echo "[$(id -un) $(pwd) $OWN $A]"; exit\n');
        assert.equal((await pty.handle.wait()).exitCode, 0);
        assert.ok(pty.text().includes('[root /tmp a b x=y]'), pty.text());
      },
    },
    {
      name: 'kill: true once, then false',
      async run(bed) {
        const sandbox = await bed.main();
        const { handle } = await open(sandbox);
        assert.equal(await sandbox.pty.kill(handle.pid), true);
        await assert.rejects(handle.wait(), (error: unknown) => {
          assert.ok(error instanceof bed.sdk.CommandExitError);
          assert.deepEqual([error.exitCode, error.error], [-1, 'signal: killed']);
          return true;
        });
        assert.equal(await sandbox.pty.kill(handle.pid), false);
      },
    },
    {
      name: 'connect to a terminal by its pid',
      since: '2.23.0',
      async run(bed) {
        const sandbox = await bed.main();
        const pty = await open(sandbox);
        await pty.handle.disconnect();
        const chunks: Uint8Array[] = [];
        const again = await sandbox.pty.connect(pty.handle.pid, {
          timeoutMs: 0,
          onData: (data) => void chunks.push(data),
        });
        await pty.type('echo re$((40+2))turned; exit\n');
        assert.equal((await again.wait()).exitCode, 0);
        assert.match(Buffer.concat(chunks).toString(), /re42turned/);
      },
    },
  ],
};
