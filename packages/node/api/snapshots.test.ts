import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { type ApiFixture, apiFixture } from './testing/fixture.ts';

describe('snapshots', () => {
  let api: ApiFixture;
  let id: string;
  beforeEach(async () => {
    api = apiFixture();
    id = String((await api.request('POST', '/v2/sandboxes', { templateID: 'base' })).body.sandboxID);
  });
  afterEach(() => api[Symbol.asyncDispose]());

  const take = async (body?: unknown) => await api.request('POST', `/sandboxes/${id}/snapshots`, body);
  const listed = async (query = '') =>
    (await api.request('GET', `/snapshots${query}`)).list.map(({ snapshotID }) => snapshotID);
  const remove = async (snapshotID: unknown) =>
    await api.request('DELETE', `/templates/${encodeURIComponent(String(snapshotID))}`);

  it('are named by their id or by the name that was asked for, and described with what they need', async () => {
    const { status, body } = await take();
    assert.equal(status, 201);
    assert.match(String(body.snapshotID), /^[a-z0-9]{20}:default$/);
    assert.deepEqual(body.names, []);
    assert.equal(body.sandboxID, id);
    for (const [name, full] of [
      ['ready', 'default/ready:default'],
      [' Default/Ready:V1 ', 'default/ready:v1'],
      ['other:v1', 'default/other:v1'],
    ]) {
      const named = await take({ name });
      assert.deepEqual([named.status, named.body.snapshotID, named.body.names], [201, full, [full]]);
      const one = await api.request('GET', `/snapshots/${encodeURIComponent(String(full))}`);
      assert.deepEqual(one.body, named.body);
    }
    const missing = await api.request('GET', '/snapshots/nothing');
    assert.deepEqual([missing.status, missing.body.code, missing.body.error_code], [404, 404, 'snapshot_not_found']);
  });

  it('refuse names that could not be found again, with the field', async () => {
    for (const name of [
      '',
      'a b',
      'elsewhere/x',
      'a/b/c',
      'base',
      'x'.repeat(20),
      'x:2f6a0c8e-5a1b-4e8e-9a55-6f0f5b1f7a10',
    ]) {
      const { status, body } = await take({ name });
      assert.equal(status, 400, name);
      assert.match(String(body.message), /^body\.name: /);
    }
    const unknown = await take({ nme: 'x' });
    assert.match(String(unknown.body.message), /body\.nme: unknown field/);
    assert.deepEqual(await listed(), []);
  });

  it('are listed newest first, filtered and page by page, with no token on an exactly full last page', async () => {
    const first = (await take()).body.snapshotID;
    await take({ name: 'ready:v1' });
    await take({ name: 'ready' });
    id = String((await api.request('POST', '/v2/sandboxes', { templateID: 'base' })).body.sandboxID);
    const last = (await take()).body.snapshotID;
    const named = ['default/ready:default', 'default/ready:v1'];
    assert.deepEqual(await listed(), [last, ...named, first]);
    assert.deepEqual(await listed(`?sandboxID=${id}`), [last]);
    assert.deepEqual(await listed('?sandboxID=inothere'), []);
    assert.deepEqual(await listed('?name=ready'), named);
    assert.deepEqual(await listed('?name=default%2Fready%3Av1'), ['default/ready:v1']);
    assert.deepEqual(await listed('?name=ready:default'), ['default/ready:default']);
    assert.deepEqual(await listed(`?name=${String(first).replace(':default', '')}`), [first]);
    assert.deepEqual(await listed(`?name=${encodeURIComponent(String(first))}`), [first]);
    for (const name of ['nothing', 'ready:v9', 'elsewhere/ready']) assert.deepEqual(await listed(`?name=${name}`), []);
    assert.equal((await api.request('GET', '/snapshots?name=a%20b')).status, 400);

    const pages: unknown[] = [];
    let token: string | null = '';
    while (token !== null) {
      const page = await api.request('GET', `/snapshots?limit=2&nextToken=${token}`);
      pages.push(page.list.length);
      token = page.headers.get('x-next-token');
    }
    assert.deepEqual(pages, [2, 2]);
    assert.equal((await api.request('GET', '/snapshots?nextToken=x')).status, 400);
  });

  it('are what sandboxes start from, by id and by name, which moves', async () => {
    const create = async (templateID: unknown) => await api.request('POST', '/v2/sandboxes', { templateID });
    const before = (await take({ name: 'ready' })).body;
    assert.equal((await create('default/ready:default')).body.templateID, before.templateID);
    const after = (await take({ name: 'ready' })).body;
    assert.equal((await create('ready')).body.templateID, after.templateID);
    const old = await create(`${before.templateID}:default`);
    assert.deepEqual([old.status, old.body.templateID, old.body.alias], [201, before.templateID, undefined]);
    assert.deepEqual(await listed(), ['default/ready:default', `${before.templateID}:default`]);
    const query = `/v2/sandboxes?template=ready`;
    assert.deepEqual(
      (await api.request('GET', query)).list.map((sandbox) => sandbox.templateID),
      [after.templateID],
    );
    assert.equal((await create('ready:v9')).status, 404);
  });

  it('are removed as templates are, once nobody uses them', async () => {
    const { snapshotID } = (await take({ name: 'ready:v1' })).body;
    const user = await api.request('POST', '/v2/sandboxes', { templateID: snapshotID });
    const refused = await remove(snapshotID);
    assert.deepEqual([refused.status, refused.body.error_code], [400, 'snapshot_in_use']);
    assert.ok(String(refused.body.message).includes(String(user.body.sandboxID)));
    await api.request('DELETE', `/sandboxes/${user.body.sandboxID}`);
    const removed = await remove(snapshotID);
    assert.deepEqual([removed.status, removed.text], [204, '']);
    const again = await remove(snapshotID);
    assert.deepEqual([again.status, again.body.code], [404, 404]);
    assert.equal(api.sandboxes.forgotten.length, 1);
    assert.deepEqual(await listed(), []);
  });

  it('are verified on demand, and not taken of a paused sandbox', async () => {
    const { snapshotID } = (await take()).body;
    const path = `/snapshots/${encodeURIComponent(String(snapshotID))}/verify`;
    assert.deepEqual((await api.request('POST', path)).body, { checkedBytes: 4096, problems: [] });
    await api.request('POST', `/sandboxes/${id}/pause`);
    const { status, body } = await take();
    assert.deepEqual([status, body.code, body.error_code], [409, 409, 'sandbox_paused']);
    assert.match(String(body.remediation), /Resume it/);
  });
});
