import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import * as newest from 'e2b';
import * as older from 'e2b-2-45';
import { createApiListener } from './listener.ts';
import { apiFixture, KEY } from './testing/fixture.ts';

/** What is used of the published packages; both have it. */
type Sdk = Pick<typeof newest, 'Sandbox' | 'Template' | 'NotFoundError' | 'AuthenticationError'>;

const versions: [string, Sdk][] = [
  ['2.51.0', newest],
  ['2.45.0', older as unknown as Sdk],
];

for (const [version, sdk] of versions) {
  describe(`the published e2b package ${version}`, () => {
    it('creates, lists, describes, extends and kills', async () => {
      await using api = apiFixture();
      const server = createServer(createApiListener(api.api, silentLogger)).listen(0, '127.0.0.1');
      await once(server, 'listening');
      try {
        const apiUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
        const options = { apiKey: KEY, apiUrl, sandboxUrl: apiUrl };
        const metadata = { 'a b': 'c&d', 'ü%': '1+1=2' };
        const sandbox = await sdk.Sandbox.create('base', { ...options, metadata, envs: { A: 'b' }, timeoutMs: 60_500 });
        await sdk.Sandbox.create(options);
        assert.equal(api.sandboxes.created[0]?.timeoutSeconds, 61);
        assert.equal(api.sandboxes.created[0]?.secure, true);
        assert.equal(api.sandboxes.created[1]?.timeoutSeconds, 300);
        assert.equal(api.sandboxes.created[1]?.template, 'base');

        const paginator = sdk.Sandbox.list({ ...options, limit: 1 });
        const seen: string[] = [];
        while (paginator.hasNext) seen.push(...(await paginator.nextItems()).map((item) => item.sandboxId));
        assert.equal(seen.length, 2);
        const filtered = await sdk.Sandbox.list({ ...options, query: { metadata, state: ['running'] } }).nextItems();
        assert.deepEqual(
          filtered.map((item) => [item.sandboxId, item.metadata, item.state, item.templateId]),
          [[sandbox.sandboxId, metadata, 'running', 'template000000000000']],
        );

        const info = await sdk.Sandbox.getInfo(sandbox.sandboxId, options);
        assert.equal(info.name, 'base');
        assert.equal(info.endAt.getTime() - info.startedAt.getTime(), 61_000);
        assert.equal(info.memoryMB, 512);

        await sandbox.setTimeout(30_000);
        const connected = await sdk.Sandbox.connect(sandbox.sandboxId, { ...options, timeoutMs: 90_000 });
        assert.equal(connected.sandboxId, sandbox.sandboxId);
        assert.deepEqual(
          api.sandboxes.calls.map(([name, , seconds]) => [name, seconds]),
          [
            ['setTimeout', 30],
            ['connect', 90],
          ],
        );

        assert.equal(await sandbox.kill(), true);
        assert.equal(await sdk.Sandbox.kill(sandbox.sandboxId, options), false);
        await assert.rejects(sdk.Sandbox.getInfo(sandbox.sandboxId, options), sdk.NotFoundError);
        await assert.rejects(sdk.Sandbox.connect('nonexistingsandbox', options), sdk.NotFoundError);
        await assert.rejects(
          sdk.Sandbox.create('base', { ...options, apiKey: `e2b_${'0b'.repeat(32)}` }),
          sdk.AuthenticationError,
        );
        await assert.rejects(sdk.Sandbox.create('nothing', options), /404: template 'nothing' not found/);
        assert.equal(await sdk.Template.exists('base', options), true);
        assert.equal(await sdk.Template.exists('nothing', options), false);
      } finally {
        server.closeAllConnections();
        server.close();
      }
    });
  });
}
