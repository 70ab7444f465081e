import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { CliError } from '../output/cli-error.ts';
import type { SandboxInfo } from './control-plane.ts';
import { EnvdClient } from './envd.ts';

test('a sandbox that serves no requests is told in the words of the server, and what to do', async (t) => {
  const refused = { code: 502, message: 'it is paused', remediation: 'Resume it.' };
  const server = createServer((_request, response) => {
    response.writeHead(502, { 'content-type': 'application/json' }).end(JSON.stringify(refused));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const envd = new EnvdClient(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, {
    sandboxID: 'i1',
  } as SandboxInfo);
  await assert.rejects(envd.start({ cmd: 'true', args: [], envs: {}, stdin: false }).next(), (error) => {
    assert.ok(error instanceof CliError);
    assert.deepEqual([error.message, error.remediation, error.exitCode], ['it is paused', 'Resume it.', 125]);
    return true;
  });
});
