import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { Exchange, FaultFront } from '../testing/fault-front.ts';
import { digestOf } from '../testing/layout.ts';
import { pushBlob } from '../testing/push.ts';
import { bytesOf, RegistryFixture } from '../testing/registry-fixture.ts';
import type { Credentials } from './credentials/contract.ts';

const DATA = randomBytes(300_000);
const BLOB = { digest: digestOf(DATA), size: DATA.length };
const USER: Credentials = { kind: 'password', username: 'me', password: 'canary-secret' };

const soak = process.env.AENV_SOAK === '1';
let fixture: RegistryFixture;

before(async () => {
  fixture = await RegistryFixture.start();
  await pushBlob({ base: fixture.base, repository: 'r' }, DATA);
});
after(() => fixture.close());

/** A front that wants Bearer tokens of its own token server, which live as long as told. */
class TokenFront {
  readonly front: FaultFront;
  issued = 0;
  lifeSeconds = 60;
  /** Authorization of the token server; undefined: everyone gets one */
  wants: string | undefined;
  blobRule: (exchange: Exchange) => unknown = () => {};
  readonly #valid = new Map<string, number>();

  constructor(front: FaultFront) {
    this.front = front;
    front.rule = async (exchange) => {
      if (exchange.url.pathname === '/token') return this.#token(exchange);
      if (exchange.url.pathname === '/v2/') return exchange.reply(200);
      const until = this.#valid.get(exchange.headers.authorization ?? '') ?? 0;
      if (until < Date.now()) return exchange.reply(401, { 'www-authenticate': this.challenge });
      await this.blobRule(exchange);
    };
  }

  get challenge(): string {
    return `Bearer realm="${this.front.base}/token",service="front",scope="repository:r:pull"`;
  }

  #token(exchange: Exchange): void {
    if (this.wants !== undefined && exchange.headers.authorization !== this.wants) {
      exchange.reply(401);
      return;
    }
    const token = `token-${++this.issued}`;
    this.#valid.set(`Bearer ${token}`, Date.now() + this.lifeSeconds * 1000);
    exchange.reply(200, {}, JSON.stringify({ token, expires_in: this.lifeSeconds }));
  }
}

async function tokenFront(): Promise<TokenFront> {
  return new TokenFront(await fixture.front());
}

const credentials = (found: Credentials | undefined) => ({ find: () => Promise.resolve(found) });
const blobOf = (host: string, found?: Credentials) =>
  fixture
    .client([host], { credentials: credentials(found) })
    .repository(host, 'r')
    .blob(BLOB);

test('a token is got once for many requests, for the scope that the registry asks for', async () => {
  const { front } = await tokenFront();
  const repository = fixture.client([front.host]).repository(front.host, 'r');
  const all = await Promise.all([1, 2, 3, 4].map(() => bytesOf(repository.blob(BLOB))));
  for (const one of all) assert.deepEqual(one, DATA);
  assert.deepEqual(await bytesOf(repository.blob(BLOB)), DATA);
  const tokens = front.matching(/token/);
  assert.equal(tokens.length, 1);
  assert.equal(tokens[0]?.url.search, '?service=front&scope=repository%3Ar%3Apull');
});

test('a token that ends while a blob comes is renewed, and the blob goes on', async () => {
  const tokens = await tokenFront();
  tokens.lifeSeconds = soak ? 3 : 1;
  tokens.blobRule = async (exchange) => {
    if (exchange.headers.range === undefined) {
      exchange.response.writeHead(200, { 'content-length': String(DATA.length) });
      exchange.response.write(DATA.subarray(0, 100_000));
      await delay(soak ? 10_000 : 1200);
      exchange.response.destroy();
    }
  };
  assert.deepEqual(await bytesOf(blobOf(tokens.front.host)), DATA);
  assert.equal(tokens.issued, 2);
});

test('a token that is refused before its time is renewed', async () => {
  const tokens = await tokenFront();
  let refused = false;
  tokens.blobRule = (exchange) => {
    if (!refused) exchange.reply(401, { 'www-authenticate': tokens.challenge });
    refused = true;
  };
  assert.deepEqual(await bytesOf(blobOf(tokens.front.host)), DATA);
  assert.equal(tokens.issued, 2);
});

test('credentials go to the token server and to nobody else', async () => {
  const tokens = await tokenFront();
  tokens.wants = `Basic ${Buffer.from('me:canary-secret').toString('base64')}`;
  const storage = await fixture.front({ address: '127.0.0.2' });
  storage.rule = (exchange) => exchange.reply(200, {}, DATA);
  tokens.blobRule = (exchange) => exchange.reply(307, { location: `${storage.base}/signed?key=abc` });
  assert.deepEqual(await bytesOf(blobOf(tokens.front.host, USER)), DATA);
  assert.equal(storage.seen.length, 1);
  assert.equal(storage.seen[0]?.headers.authorization, undefined);
  assert.equal(storage.seen[0]?.url.href, `${storage.base}/signed?key=abc`);
  const toRegistry = tokens.front.matching(/blobs/).map(({ headers }) => headers.authorization);
  assert.deepEqual(toRegistry, [undefined, 'Bearer token-1']);
});

test('a redirect within the registry keeps the token', async () => {
  const tokens = await tokenFront();
  tokens.blobRule = (exchange) => {
    if (!exchange.url.searchParams.has('there')) exchange.reply(307, { location: `${exchange.url.pathname}?there=1` });
  };
  assert.deepEqual(await bytesOf(blobOf(tokens.front.host)), DATA);
});

test('refused credentials are told as such, with the registry and without the secret', async () => {
  const tokens = await tokenFront();
  tokens.wants = 'Basic other';
  const refused = {
    code: 'registry_auth',
    message: new RegExp(`credentials refused for registry ${tokens.front.host}`),
  };
  await assert.rejects(bytesOf(blobOf(tokens.front.host, USER)), (error: Error) => {
    assert.ok(!`${error.stack}${JSON.stringify(error)}`.includes('canary'));
    assert.match(error.message, refused.message);
    return true;
  });
  await assert.rejects(bytesOf(blobOf(tokens.front.host)), { code: 'registry_auth', message: /without credentials/ });
  const denied = await tokenFront();
  denied.blobRule = (exchange) => exchange.reply(403, {}, '{"errors":[{"code":"DENIED","message":"no"}]}');
  await assert.rejects(bytesOf(blobOf(denied.front.host, USER)), { code: 'registry_auth', message: /DENIED: no/ });
});

test('a token for a refresh token is asked for by POST, and the secret is in no URL', async () => {
  const front = await fixture.front();
  let form = '';
  front.rule = (exchange) => {
    if (exchange.url.pathname === '/token') {
      form = exchange.body;
      return exchange.reply(200, {}, '{"access_token":"good"}');
    }
    if (exchange.url.pathname === '/v2/' || exchange.headers.authorization === 'Bearer good') return;
    exchange.reply(401, { 'www-authenticate': `Bearer realm="${front.base}/token",service="s"` });
  };
  assert.deepEqual(await bytesOf(blobOf(front.host, { kind: 'identity-token', token: 'canary' })), DATA);
  assert.deepEqual(Object.fromEntries(new URLSearchParams(form)), {
    grant_type: 'refresh_token',
    refresh_token: 'canary',
    scope: 'repository:r:pull',
    client_id: 'aenv',
    service: 's',
  });
  assert.ok(front.seen.every(({ url }) => !url.href.includes('canary')));
});

test('a redirect to an address of the host alone is not followed', async () => {
  const front = await fixture.front();
  for (const location of [
    'http://169.254.169.254/latest/meta-data',
    'http://[::ffff:169.254.169.254]/',
    'http://0.0.0.0/',
  ]) {
    front.rule = (exchange) => {
      if (exchange.url.pathname.includes('blobs')) exchange.reply(307, { location });
    };
    await assert.rejects(bytesOf(blobOf(front.host)), { code: 'registry_address_refused' }, location);
  }
  const plain = fixture.client([]).repository('169.254.169.254', 'r');
  await assert.rejects(bytesOf(plain.blob(BLOB)), { code: 'registry_address_refused' });
});

test('redirects without end, and to places that are no URL for this, are refused', async () => {
  const front = await fixture.front();
  const lead = async (location: string, message: RegExp) => {
    front.rule = (exchange) => {
      if (exchange.url.pathname.includes('blobs')) exchange.reply(302, { location });
    };
    await assert.rejects(bytesOf(blobOf(front.host)), { code: 'registry_unavailable', message });
  };
  await lead('/v2/r/blobs/round', /on and on/);
  await lead('file:///etc/passwd', /not HTTPS/);
  await lead('http://user:secret@127.0.0.1/', /not HTTPS/);
  await lead('', /on and on|not HTTPS/);
});

test('a registry with passwords of its own takes Basic, and says when they are wrong', async () => {
  // bcrypt of `secret`
  const htpasswd = 'me:$2y$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a';
  const own = await RegistryFixture.start({ htpasswd });
  try {
    const authorization = `Basic ${Buffer.from('me:secret').toString('base64')}`;
    await pushBlob({ base: own.base, repository: 'r', authorization }, DATA);
    const { host } = own.registry;
    const read = (password: string) => {
      const found = credentials({ kind: 'password', username: 'me', password });
      return bytesOf(own.client([host], { credentials: found }).repository(host, 'r').blob(BLOB));
    };
    assert.deepEqual(await read('secret'), DATA);
    await assert.rejects(read('wrong'), { code: 'registry_auth', message: /credentials refused for registry/ });
    // A login counts at once, also for who had the wrong password before.
    let now = 'wrong';
    const later = { find: () => Promise.resolve({ kind: 'password', username: 'me', password: now } as const) };
    const repository = own.client([host], { credentials: later }).repository(host, 'r');
    await assert.rejects(bytesOf(repository.blob(BLOB)), { code: 'registry_auth' });
    now = 'secret';
    assert.deepEqual(await bytesOf(repository.blob(BLOB)), DATA);
    const nobody = own.client([host]).repository(host, 'r');
    await assert.rejects(bytesOf(nobody.blob(BLOB)), { code: 'registry_auth', message: /there are none for it/ });
  } finally {
    await own.close();
  }
});
