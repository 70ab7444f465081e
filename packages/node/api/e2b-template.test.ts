import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import * as newest from 'e2b';
import * as older from 'e2b-2-45';
import { createApiListener } from './listener.ts';
import { apiFixture, KEY } from './testing/fixture.ts';

for (const [version, sdk] of [
  ['2.51.0', newest],
  ['2.45.0', older as unknown as typeof newest],
] as const) {
  test(`the published e2b package ${version} builds a template from an image, and is told why it cannot`, async () => {
    await using api = apiFixture();
    const server = createServer(createApiListener(api.api, silentLogger)).listen(0, '127.0.0.1');
    await once(server, 'listening');
    try {
      const apiUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      const template = sdk.Template().fromImage('debian:13').setStartCmd('serve', 'check');
      // The route of built-in templates answers for all builds.
      api.builds.current = { templateId: 't1', buildId: 'b1', status: 'ready', entries: [] };
      const built = await sdk.Template.build(template, 'tools', { apiKey: KEY, apiUrl, cpuCount: 2, memoryMB: 1024 });
      assert.deepEqual([built.templateId, built.buildId], ['t1', 'b1']);
      assert.deepEqual(api.images.ordered[0], {
        ...{ alias: 'tools', tags: ['default'], cpuCount: 2, memoryMb: 1024, diskSizeMb: undefined },
      });
      assert.deepEqual(api.images.started[0]?.[1], {
        ...{ image: 'debian:13', startCmd: 'serve', ready: { kind: 'command', cmd: 'check' } },
      });
      api.builds.current = { ...api.builds.current, status: 'error', reason: 'no such image' };
      await assert.rejects(sdk.Template.build(template, 'tools', { apiKey: KEY, apiUrl }), /no such image/);
      const steps = sdk.Template().fromImage('debian:13').runCmd('true');
      await assert.rejects(sdk.Template.build(steps, 'tools', { apiKey: KEY, apiUrl }), /build steps/);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });
}
