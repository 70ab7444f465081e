import assert from 'node:assert/strict';
import type { Group } from '../support/scenario.ts';
import type { SdkBed } from './bed.ts';

export const transport: Group<SdkBed> = {
  title: 'Without a domain',
  scenarios: [
    {
      name: 'E2B_API_URL and E2B_SANDBOX_URL over plain HTTP: commands, files, terminals',
      since: '2.23.0',
      async run(bed) {
        const { url, apiKey } = bed.host.daemon;
        const { sandboxId } = await bed.main();
        const options = { apiUrl: url, sandboxUrl: url, apiKey, timeoutMs: 600_000 };
        const sandbox = await bed.sdk.Sandbox.connect(sandboxId, options);
        assert.equal((await sandbox.commands.run('echo plain')).stdout, 'plain\n');
        await sandbox.files.write('plain.txt', 'plain');
        assert.equal(await sandbox.files.read('plain.txt'), 'plain');
        const pty = await sandbox.pty.create({ cols: 80, rows: 24, onData: () => {} });
        await sandbox.pty.sendInput(pty.pid, new TextEncoder().encode('exit\n'));
        assert.equal((await pty.wait()).exitCode, 0);
        assert.equal(await sandbox.isRunning(), true);
      },
    },
  ],
};
