import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { createProgram } from '../program.ts';

type Handler = (
  method: string,
  url: URL,
  body: unknown,
) => {
  readonly status: number;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
};

/** The commands against a server in memory; gives what they print. `told` is what they have said on stderr. */
async function aenv(t: TestContext, handler: Handler) {
  const server = createServer(async (request, response) => {
    const sent = await json(request).catch(() => undefined);
    const { status, body, headers } = handler(request.method ?? '', new URL(request.url ?? '/', 'http://x'), sent);
    response.writeHead(status, headers).end(body === undefined ? '' : JSON.stringify(body));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const told: string[] = [];
  const program = async (...words: string[]): Promise<string[]> => {
    const lines = t.mock.method(console, 'log', () => {});
    const errors = t.mock.method(console, 'error', () => {});
    try {
      await createProgram('0').parseAsync(['--url', url, '--api-key', 'k', ...words], { from: 'user' });
      return lines.mock.calls.map((call) => String(call.arguments[0]));
    } finally {
      told.push(...errors.mock.calls.map((call) => String(call.arguments[0])));
      lines.mock.restore();
      errors.mock.restore();
    }
  };
  return Object.assign(program, { told });
}

const KEY = {
  id: 'key-1',
  name: 'ci',
  mask: { prefix: 'e2b_', valueLength: 64, maskedValuePrefix: 'ab', maskedValueSuffix: '6789' },
  createdAt: '2026-01-01T00:00:00.000Z',
  lastUsed: null,
};

test('key create prints the key and nothing else; ls shows a mask; revoke names the id', async (t) => {
  const calls: string[] = [];
  const run = await aenv(t, (method, { pathname }) => {
    calls.push(`${method} ${pathname}`);
    if (method === 'POST') return { status: 201, body: { ...KEY, key: 'e2b_abc' } };
    return method === 'GET' ? { status: 200, body: [KEY] } : { status: 204 };
  });
  assert.deepEqual(await run('key', 'create', 'ci'), ['e2b_abc']);
  const [table = ''] = await run('key', 'ls', '--output', 'table');
  assert.match(table, /key-1 +ci +e2b_ab…6789 .* never$/);
  assert.deepEqual(await run('key', 'revoke', 'key-1'), []);
  assert.deepEqual(calls, ['POST /api-keys', 'GET /api-keys', 'DELETE /api-keys/key-1']);
});

test('logs -f goes on from the last moment, until the sandbox is over and its last words are shown', async (t) => {
  const at = (ms: number) => new Date(ms).toISOString();
  const entry = (ms: number, message: string) => ({
    timestamp: at(ms),
    level: 'info',
    message,
    fields: { logger: 'lifecycle' },
  });
  const all = [entry(1000, 'sandbox created'), entry(2000, 'sandbox \u001b[2Jrunning')];
  let asked = 0;
  const run = await aenv(t, (_method, { pathname, searchParams }) => {
    if (pathname === '/sandboxes/i1') {
      asked += 1;
      if (asked === 1) return { status: 200, body: { sandboxID: 'i1' } };
      all.push(entry(3000, 'sandbox ended (killed)'));
      return { status: 404, body: { code: 404, message: 'gone' } };
    }
    const cursor = Number(searchParams.get('cursor'));
    return { status: 200, body: { logs: all.filter(({ timestamp }) => Date.parse(timestamp) >= cursor) } };
  });
  assert.deepEqual(await run('logs', 'i1', '-f'), [
    `${at(1000)} INFO  lifecycle sandbox created`,
    `${at(2000)} INFO  lifecycle sandbox \\x1b[2Jrunning`,
    `${at(3000)} INFO  lifecycle sandbox ended (killed)`,
  ]);
});

test('metrics are a table of one line for each sample', async (t) => {
  const sample = {
    timestamp: '2026-01-01T00:00:00.000Z',
    cpuCount: 2,
    cpuUsedPct: 12.345,
    memUsed: 3 * 2 ** 20,
    memTotal: 8 * 2 ** 20,
    diskUsed: 0,
    diskTotal: 2 ** 30,
  };
  const run = await aenv(t, () => ({ status: 200, body: [sample] }));
  const [table = ''] = await run('metrics', 'i1', '--output', 'table');
  assert.match(table, /2026-01-01T00:00:00\.000Z +12\.3 % of 2 +3 \/ 8 MiB +0 \/ 1024 MiB$/);
});

test('pause goes on with the next sandbox when one refuses; resume names the sandbox', async (t) => {
  const calls: string[] = [];
  const run = await aenv(t, (method, { pathname }, body) => {
    calls.push(`${method} ${pathname} ${JSON.stringify(body)}`);
    if (pathname.endsWith('/resume')) return { status: 201, body: { sandboxID: 'i3' } };
    const refused = { code: 409, message: 'paused', remediation: 'Resume it.' };
    return pathname.includes('/i1/') ? { status: 409, body: refused } : { status: 204 };
  });
  const code = process.exitCode;
  assert.deepEqual(await run('pause', 'i1', 'i2'), ['i2']);
  assert.deepEqual(run.told, ['aenv: i1: paused', '      Resume it.']);
  assert.equal(process.exitCode, 1);
  process.exitCode = code;
  assert.deepEqual(await run('resume', 'i3'), ['i3']);
  assert.deepEqual(await run('pause', '--disk', 'i2'), ['i2']);
  assert.deepEqual(await run('resume', 'i3', '--boot', '--timeout', '5'), ['i3']);
  assert.deepEqual(calls, [
    'POST /sandboxes/i1/pause {"memory":true}',
    'POST /sandboxes/i2/pause {"memory":true}',
    'POST /sandboxes/i3/resume {"timeout":300,"memory":true}',
    'POST /sandboxes/i2/pause {"memory":false}',
    'POST /sandboxes/i3/resume {"timeout":5,"memory":false}',
  ]);
});

test('ls tells of a paused sandbox that it is paused, and no end', async (t) => {
  const endAt = new Date(Date.now() + 3_600_000).toISOString();
  const sandbox = { sandboxID: 'i1', templateID: 'base', state: 'paused', endAt, cpuCount: 1, memoryMB: 512 };
  const run = await aenv(t, () => ({ status: 200, body: [sandbox] }));
  const [table = ''] = await run('ls', '--output', 'table');
  assert.match(table, /i1 +base +paused +1 +512 MiB/);
});

test('fork prints the ids of the children, and the reason of one that did not start', async (t) => {
  const run = await aenv(t, (method, { pathname }) => {
    assert.equal(`${method} ${pathname}`, 'POST /sandboxes/i1/fork');
    const error = { code: 503, message: 'no room', remediation: 'Make some.' };
    return { status: 201, body: [{ sandbox: { sandboxID: 'i2' } }, { error }] };
  });
  const code = process.exitCode;
  assert.deepEqual(await run('fork', 'i1', '-n', '2'), ['i2']);
  assert.deepEqual(run.told, ['aenv: no room', '      Make some.']);
  assert.equal(process.exitCode, 1);
  process.exitCode = code;
  await assert.rejects(run('fork', 'i1', '-n', '101'), /from 1 to 100/);
});

test('template build follows the log of the build to its end and prints the id of the template', async (t) => {
  const lines = ['making a layer', 'almost \u001b[2Jdone', 'ready'];
  let asked = 0;
  const run = await aenv(t, (method, { pathname, searchParams }) => {
    if (method === 'POST') {
      assert.equal(pathname, '/aenv/templates/code-interpreter/builds');
      return { status: 202, body: { templateID: 't1', buildID: 'b1' } };
    }
    assert.equal(pathname, '/templates/t1/builds/b1/status');
    const offset = Number(searchParams.get('logsOffset'));
    const logEntries = lines.slice(offset, offset + 2).map((message) => ({ timestamp: '', level: 'info', message }));
    asked++;
    return { status: 200, body: { status: asked > 1 ? 'ready' : 'building', logEntries } };
  });
  assert.deepEqual(await run('template', 'build', 'code-interpreter'), ['t1']);
  assert.equal(asked, 3);
});

test('a build that fails is an error with its reason', async (t) => {
  const run = await aenv(t, (method) =>
    method === 'POST'
      ? { status: 202, body: { templateID: 't1', buildID: 'b1' } }
      : { status: 200, body: { status: 'error', logEntries: [], reason: { message: 'no space' } } },
  );
  await assert.rejects(run('template', 'build', 'code-interpreter'), /the build failed: no space/);
  await assert.rejects(run('template', 'build', 'other'), /code-interpreter/);
});

test('pull orders a template by the name of the image, follows the build and prints the id', async (t) => {
  const bodies: unknown[] = [];
  const run = await aenv(t, (method, { pathname }, body) => {
    if (method === 'POST') bodies.push([pathname, body]);
    if (pathname === '/v3/templates') return { status: 202, body: { templateID: 't1', buildID: 'b1' } };
    if (method === 'POST') return { status: 202 };
    return { status: 200, body: { status: 'ready', logEntries: [] } };
  });
  assert.deepEqual(await run('pull', 'ghcr.io/team/My.Tool:1', '--cpu', '2', '--probe', '80', '--timeout', '9'), [
    't1',
  ]);
  assert.deepEqual(bodies, [
    ['/v3/templates', { name: 'my-tool', cpuCount: 2 }],
    [
      '/v2/templates/t1/builds/b1',
      { fromImage: 'ghcr.io/team/My.Tool:1', timeoutSeconds: 9, readyProbe: { port: 80 } },
    ],
  ]);
  assert.deepEqual(await run('pull', 'x', '--name', 'other', '-d'), ['t1 b1']);
  assert.deepEqual(bodies.at(-2), ['/v3/templates', { name: 'other' }]);
});

test('template rm goes on after a template that is in use', async (t) => {
  const run = await aenv(t, (method, { pathname }) => {
    assert.equal(method, 'DELETE');
    return pathname === '/templates/a' ? { status: 400, body: { message: 'used by i1' } } : { status: 204 };
  });
  const code = process.exitCode;
  assert.deepEqual(await run('template', 'rm', 'a', 'b'), ['b']);
  assert.equal(process.exitCode, 1);
  process.exitCode = code;
});

test('start --cold boots an image; sizes without it are refused', async (t) => {
  const bodies: unknown[] = [];
  const run = await aenv(t, (_, { pathname }, body) => {
    bodies.push([pathname, body]);
    return { status: 201, body: { sandboxID: 'i1' } };
  });
  assert.deepEqual(await run('start', '--cold', 'debian:13', '-d', '--memory', '256', '--no-internet'), ['i1']);
  const more = { envVars: {}, metadata: {}, memoryMB: 256, allowInternetAccess: false };
  assert.deepEqual(bodies, [['/sandboxes-cold', { image: 'debian:13', secure: true, timeout: 300, ...more }]]);
  await assert.rejects(run('start', 'base', '-d', '--memory', '256'), /sizes belong to the template/);
  await assert.rejects(run('start', 'base', '-d', '--drive', 'a=b'), /drives belong to sandboxes of images/);
  bodies.length = 0;
  const drives = ['--drive', 'data=reg:5000/a/b:1', '--drive', 'out=b@sha256:00,rw,path=/srv/x=y,sub=a/b,size=64'];
  await run('start', '--cold', 'debian:13', '-d', ...drives);
  const [, cold] = (bodies[0] ?? []) as [string, { attachedDrives: unknown }];
  assert.deepEqual(cold.attachedDrives, [
    { driveID: 'data', source: { image: 'reg:5000/a/b:1' } },
    {
      ...{ driveID: 'out', source: { image: 'b@sha256:00' }, readOnly: false },
      ...{ mountPath: '/srv/x=y', subPath: 'a/b', diskSizeMB: 64 },
    },
  ]);
  for (const bad of ['data', '=b', 'a=', 'a=b,x', 'a=b,size=0', 'a=b,path=']) {
    await assert.rejects(run('start', '--cold', 'debian:13', '-d', '--drive', bad), { code: /invalidArgument/ }, bad);
  }
});

test('snapshots: create prints the reference, ls all pages, rm spares templates, verify tells by its exit code', async (t) => {
  const calls: string[] = [];
  const snapshot = (name: string) => ({
    ...{ snapshotID: `default/${name}:v1`, names: [], templateID: `t${name}`, sandboxID: 'i1' },
    ...{ createdAt: new Date(Date.now() - 65_000).toISOString(), cpuCount: 1, memoryMB: 512, diskSizeMB: 10_240 },
  });
  const run = await aenv(t, (method, { pathname, search, searchParams }, body) => {
    calls.push(
      `${method} ${decodeURIComponent(pathname)}${search}${body === undefined ? '' : ` ${JSON.stringify(body)}`}`,
    );
    if (pathname.endsWith('/verify')) {
      return {
        status: 200,
        body: { checkedBytes: 2 ** 20, problems: [{ artefact: 'a', path: '/p', message: 'bad' }] },
      };
    }
    if (pathname === '/snapshots') {
      const [name, headers] = searchParams.has('nextToken') ? ['b', {}] : ['a', { 'x-next-token': 'next' }];
      return { status: 200, body: [snapshot(name)], headers };
    }
    if (pathname === '/snapshots/base') return { status: 404, body: { code: 404, message: 'no such snapshot' } };
    if (method === 'DELETE') return { status: 204 };
    return { status: method === 'POST' ? 201 : 200, body: snapshot('a') };
  });
  assert.deepEqual(await run('snapshot', 'create', 'i1', '--name', 'a:v1'), ['default/a:v1']);
  const [table = ''] = await run('snapshot', 'ls', '--sandbox', 'i1', '--output', 'table');
  assert.match(table, /^SNAPSHOT .*\ndefault\/a:v1 +ta +i1 +1m 5s +1 +512 MiB +10240 MiB\ndefault\/b:v1 /);
  const code = process.exitCode;
  assert.deepEqual(await run('snapshot', 'rm', 'base', 'a:v1'), ['a:v1']);
  assert.equal(process.exitCode, 1);
  process.exitCode = code;
  assert.deepEqual(await run('snapshot', 'verify', 'a:v1', '--output', 'table'), ['1.0 MiB read, 1 problems']);
  assert.equal(process.exitCode, 1);
  process.exitCode = code;
  assert.deepEqual(calls, [
    'POST /sandboxes/i1/snapshots {"name":"a:v1"}',
    'GET /snapshots?sandboxID=i1',
    'GET /snapshots?sandboxID=i1&nextToken=next',
    'GET /snapshots/base',
    'GET /snapshots/a:v1',
    'DELETE /templates/ta',
    'POST /snapshots/a:v1/verify',
  ]);
});
