import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { until } from '../../harness/until.ts';
import type { Group } from '../support/scenario.ts';
import type { CliBed } from './bed.ts';

type Listed = readonly { readonly sandboxId: string; readonly state: string; readonly name: string }[];

async function list(bed: CliBed, ...options: string[]): Promise<Listed> {
  return JSON.parse((await bed.ok(['sandbox', 'list', '--format', 'json', ...options])).stdout) as Listed;
}

async function endsIn(bed: CliBed, id: string): Promise<number> {
  const info = (await (await bed.host.daemon.api('GET', `/sandboxes/${id}`)).json()) as { endAt: string };
  return Date.parse(info.endAt) - Date.now();
}

export const sandboxes: Group<CliBed> = {
  title: 'Sandboxes',
  scenarios: [
    {
      name: 'sandbox create --detach --timeout --lifecycle.ontimeout --lifecycle.autoresume',
      async run(bed) {
        const id = await bed.sandboxId();
        assert.match(id, /^i[a-z0-9]{20}$/);
        const left = await endsIn(bed, id);
        assert.ok(left > 500_000 && left <= 600_000, `${left} ms left`);
      },
    },
    {
      name: 'sandbox list: as a table and as JSON, by state, metadata, template, in either order',
      async run(bed) {
        const sandboxId = await bed.sandboxId();
        const table = (await bed.ok(['sandbox', 'list'])).stdout;
        assert.match(table, new RegExp(`${sandboxId}.*base.*Running`));
        const [found] = await list(bed);
        assert.deepEqual([found?.sandboxId, found?.state, found?.name], [sandboxId, 'running', 'base']);
        const filters: [number, ...string[]][] = [
          [1, '--template', 'base', '--order', 'asc', '--limit', '5'],
          [0, '--state', 'paused'],
          [0, '--metadata', 'k=v'],
          [0, '--started-after', '2100-01-01T00:00:00Z'],
        ];
        const counts = await Promise.all(filters.map(async ([, ...words]) => (await list(bed, ...words)).length));
        assert.deepEqual(
          counts,
          filters.map(([count]) => count),
        );
      },
    },
    {
      name: 'sandbox info: as text and as JSON',
      async run(bed) {
        const id = await bed.sandboxId();
        const info = JSON.parse((await bed.ok(['sandbox', 'info', id, '--format', 'json'])).stdout) as object;
        assert.ok('sandboxId' in info && info.sandboxId === id);
        assert.ok('lifecycle' in info && 'network' in info && 'memoryMB' in info);
        assert.deepEqual(info.lifecycle, { onTimeout: 'pause', autoResume: true });
        const text = (await bed.ok(['sandbox', 'info', id])).stdout;
        assert.match(text, /State: running[\s\S]*vCPUs: 1[\s\S]*RAM MiB: 512/);
        const unknown = await bed.run(['sandbox', 'info', 'nonexistingsandbox']);
        assert.deepEqual([unknown.code, unknown.stderr], [1, "Sandbox nonexistingsandbox wasn't found\n"]);
      },
    },
    {
      name: 'sandbox metrics',
      async run(bed) {
        const id = await bed.sandboxId();
        const metrics = async () => (await bed.ok(['sandbox', 'metrics', id, '--format', 'json'])).stdout;
        await until(async () => /cpuUsedPct/.test(await metrics()), { timeoutMs: 60_000, what: 'a first point' });
        const first = JSON.parse((await metrics()).trim().split('\n')[0] ?? '') as Record<string, number>;
        assert.equal(first.cpuCount, 1);
        assert.ok(Number(first.memUsed) > 0 && Number(first.diskTotal) > 0);
        assert.match((await bed.ok(['sandbox', 'metrics', id])).stdout, /CPU: .*Memory: .*Disk: .* MiB/);
      },
    },
    {
      name: 'sandbox logs: as text and as JSON, by level and logger',
      async run(bed) {
        const id = await bed.sandboxId();
        const text = (await bed.ok(['sandbox', 'logs', id])).stdout;
        assert.match(text, /INFO .*'?message'?: 'sandbox running'/);
        const lines = (await bed.ok(['sandbox', 'logs', id, '--format', 'json'])).stdout.trim().split('\n');
        const messages = lines.map((line) => (JSON.parse(line) as { message: string }).message);
        assert.ok(messages.includes('sandbox created') && messages.includes('sandbox running'), text);
        const none = await bed.ok(['sandbox', 'logs', id, '--format', 'json', '--loggers', 'nosuch']);
        assert.equal(none.stdout.trim(), '');
      },
    },
    {
      name: 'sandbox pause, sandbox resume',
      async run(bed) {
        const id = await bed.sandboxId();
        assert.match((await bed.ok(['sandbox', 'pause', id])).stdout, /has been paused/);
        assert.deepEqual(
          (await list(bed, '--state', 'paused')).map(({ sandboxId }) => sandboxId),
          [id],
        );
        assert.match((await bed.ok(['sandbox', 'pause', id])).stdout, /is already paused/);
        assert.match((await bed.ok(['sandbox', 'resume', id])).stdout, /has been resumed/);
        assert.equal((await bed.ok(['sandbox', 'exec', id, 'echo awake'])).stdout, 'awake\n');
        assert.match((await bed.ok(['sandbox', 'resume', id])).stdout, /has been resumed/);
      },
    },
    {
      name: 'template list',
      async run(bed) {
        assert.match((await bed.ok(['template', 'list'])).stdout, /Private +[a-z0-9]{20} +base/);
        const templates = JSON.parse((await bed.ok(['template', 'list', '--format', 'json'])).stdout) as {
          aliases: string[];
        }[];
        assert.ok(templates.some(({ aliases }) => aliases.includes('base')));
      },
    },
    {
      name: 'the key from ~/.e2b/config.json',
      async run(bed) {
        const account = {
          identity: { email: 'a@some.test' },
          oauth: { token_endpoint: '', revoke_endpoint: '', client_id: '' },
          tokens: { access_token: '', refresh_token: '' },
        };
        const project = { projectName: 'default', projectId: 'default', projectApiKey: bed.host.daemon.apiKey };
        const config = { version: 2, ...account, last_refresh: '', ...project };
        const home = join(bed.home, 'logged-in');
        await mkdir(join(home, '.e2b'), { recursive: true });
        await writeFile(join(home, '.e2b', 'config.json'), JSON.stringify(config), { mode: 0o600 });
        const env = { HOME: home, E2B_API_KEY: '' };
        assert.match((await bed.ok(['sandbox', 'list'], { env })).stdout, new RegExp(await bed.sandboxId()));
        const none = await bed.run(['sandbox', 'list'], { env: { E2B_API_KEY: '' } });
        assert.equal(none.code, 1);
        assert.match(none.stderr, /must be logged in/);
      },
    },
    {
      name: 'a key that is not valid: told',
      async run(bed) {
        const env = { E2B_API_KEY: `e2b_${'0b'.repeat(32)}` };
        const result = await bed.run(['sandbox', 'list'], { env });
        assert.equal(result.code, 1);
        assert.match(result.stderr, /AuthenticationError: Unauthorized.*the API key is not valid/);
      },
    },
  ],
};

export const snapshots: Group<CliBed> = {
  title: 'Snapshots',
  scenarios: [
    {
      name: 'sandbox snapshot create, list, delete',
      async run(bed) {
        const id = await bed.sandboxId();
        const created = await bed.ok(['sandbox', 'snapshot', 'create', id, '--name', 'by-cli:v1']);
        assert.match(created.stdout, /Created snapshot default\/by-cli:v1 from sandbox/);
        const listed = await bed.ok(['sandbox', 'snapshot', 'list', id, '--format', 'json']);
        assert.deepEqual(JSON.parse(listed.stdout), [
          { snapshotId: 'default/by-cli:v1', names: ['default/by-cli:v1'] },
        ]);
        const remove = ['sandbox', 'snapshot', 'delete', 'default/by-cli:v1'];
        assert.match((await bed.ok(remove)).stdout, /Snapshot default\/by-cli:v1 has been deleted/);
        assert.match((await bed.run(remove)).stderr, /wasn't found/);
      },
    },
  ],
};

/** The last ones: they end the sandbox. */
export const endings: Group<CliBed> = {
  title: 'Ends',
  scenarios: [
    {
      name: 'sandbox logs --follow ends with the sandbox',
      async run(bed) {
        const id = await bed.sandboxId();
        const following = bed.run(['sandbox', 'logs', id, '--follow']);
        await new Promise((resolve) => setTimeout(resolve, 3_000));
        assert.match((await bed.ok(['sandbox', 'kill', id])).stdout, new RegExp(`Sandbox ${id} has been killed`));
        const { code, stdout } = await following;
        assert.equal(code, 0);
        assert.match(stdout, /sandbox running[\s\S]*Stopped printing logs — sandbox is closed/);
      },
    },
    {
      name: 'sandbox kill: one that is not there, and all',
      async run(bed) {
        const id = await bed.sandboxId();
        assert.match((await bed.run(['sandbox', 'kill', id])).stderr, /wasn't found/);
        assert.match((await bed.ok(['sandbox', 'kill', '--all'])).stdout, /No running sandboxes/);
        const logs = await bed.ok(['sandbox', 'logs', id]);
        assert.match(logs.stdout, /sandbox ended \(killed\)/);
      },
    },
  ],
};
