import assert from 'node:assert/strict';
import type { LookupAddress } from 'node:dns';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { locate } from '../place.ts';
import { registrySettings } from '../settings.ts';
import { readBounded } from './bounded.ts';
import { type Reach, Transport } from './transport.ts';

const server = createServer((request, response) => response.end(`hello ${request.headers.host}`));
let port = 0;
before(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  ({ port } = server.address() as AddressInfo);
});
after(() => server.close());

const PUBLIC: Reach = { insecure: true, authority: undefined, limit: 'public' };
const PRIVATE: Reach = { ...PUBLIC, limit: 'private' };

/** A transport for which every name has these addresses, each time the next ones. */
async function withNames(answers: readonly (readonly string[])[], use: (transport: Transport) => Promise<void>) {
  let asked = 0;
  const resolve = (): Promise<LookupAddress[]> => {
    const addresses = answers[Math.min(asked++, answers.length - 1)] ?? [];
    return Promise.resolve(addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })));
  };
  const transport = new Transport({ resolve });
  try {
    await use(transport);
  } finally {
    await transport.close();
  }
}

const url = () => new URL(`http://registry.test:${port}/`);

test('only addresses within the limit are connected to', async () => {
  await withNames([['169.254.1.1', '127.0.0.1']], async (transport) => {
    const response = await transport.send({ url: url() }, PRIVATE);
    assert.equal((await readBounded(response, 100, 'answer')).toString(), `hello registry.test:${port}`);
    await assert.rejects(transport.send({ url: url() }, PUBLIC), { code: 'registry_address_refused' });
    const literal = new URL(`http://127.0.0.1:${port}/`);
    await assert.rejects(transport.send({ url: literal }, PUBLIC), { code: 'registry_address_refused' });
    await assert.rejects(transport.send({ url: new URL('http://[::1]/') }, PUBLIC), {
      code: 'registry_address_refused',
    });
  });
});

test('a name that turns from a public to a private address after it was looked at is not connected to', async () => {
  await withNames([['8.8.8.8'], ['127.0.0.1']], async (transport) => {
    const settings = registrySettings({ search: [], insecure: [], mirrors: [], ca: [] });
    const { reach } = await locate(transport, settings, `registry.test:${port}`);
    assert.equal(reach.limit, 'public');
    await assert.rejects(transport.send({ url: url() }, reach), { code: 'registry_address_refused' });
  });
});

test('a registry with a link-local address is asked only when the configuration names it', async () => {
  const host = `registry.test:${port}`;
  const settings = (ca: string[]) => registrySettings({ search: [], insecure: [], mirrors: [], ca });
  await withNames([['8.8.8.8', '169.254.169.254']], async (transport) => {
    await assert.rejects(locate(transport, settings([]), host), { code: 'registry_address_refused' });
    assert.equal((await locate(transport, settings([`${host}=/ca.pem`]), host)).reach.limit, 'link-local');
  });
});

test('what cannot be reached is told with the host and the reason, and nothing of the URL', async () => {
  const transport = new Transport();
  const refused = new URL('http://127.0.0.1:9/path?token=canary');
  await assert.rejects(transport.send({ url: refused }, PRIVATE), {
    code: 'registry_unavailable',
    message: '127.0.0.1:9: nothing listens there',
  });
  await assert.rejects(transport.depthOf('no-such-host.invalid'), {
    code: 'registry_unavailable',
    message: /no-such-host.invalid: the name/,
  });
  await transport.close();
});

test('an answer that is larger than it may be is not read to its end', async () => {
  const transport = new Transport();
  const response = await transport.send({ url: new URL(`http://127.0.0.1:${port}/`) }, PRIVATE);
  await assert.rejects(readBounded(response, 3, 'the answer'), {
    code: 'image_invalid',
    message: /larger than 3 bytes/,
  });
  const signal = AbortSignal.abort(new Error('enough'));
  await assert.rejects(transport.send({ url: new URL(`http://127.0.0.1:${port}/`), signal }, PRIVATE), /enough/);
  await transport.close();
});
