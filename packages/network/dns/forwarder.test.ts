import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import test, { type TestContext } from 'node:test';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { silentMetrics } from '@aenv/platform/observability/metrics.ts';
import type { EgressPolicy } from '../slots/contract.ts';
import { DnsForwarder } from './forwarder.ts';
import { type Message, RCODE, readMessage, TYPE, writeQuery } from './message.ts';
import type { Upstream } from './resolv-conf.ts';
import { Resolver, type ResolverTimes } from './resolver.ts';
import { answerTo } from './testing/answers.ts';
import { askOverTcp, askOverUdp } from './testing/client.ts';
import { TestUpstream, type UpstreamBehaviour } from './testing/upstream.ts';

const LISTEN = '127.0.0.1';
const OPEN_SLOT = '127.0.0.2';
const CLOSED_SLOT = '127.0.0.3';
const TIMES: ResolverTimes = { hedgeMs: 100, deadMs: 400, slowMs: 1_000 };

const normal: UpstreamBehaviour = (query) => [answerTo(query, '192.0.2.55')];
const silent: UpstreamBehaviour = () => [];

async function setUp(t: TestContext, upstreams: readonly Upstream[], times = TIMES, wanted = 0) {
  const policies = new Map<string, EgressPolicy>([
    [OPEN_SLOT, { internet: true }],
    [CLOSED_SLOT, { internet: false }],
  ]);
  const forwarder = new DnsForwarder({
    resolver: new Resolver(async () => upstreams, times),
    policyOf: (address) => policies.get(address),
    log: silentLogger,
    metrics: silentMetrics,
  });
  const port = await forwarder.listen(LISTEN, wanted);
  t.after(() => forwarder.close());
  return { forwarder, port, policies };
}

async function startUpstream(t: TestContext, behaviour: UpstreamBehaviour): Promise<TestUpstream> {
  const upstream = await TestUpstream.start(behaviour);
  t.after(() => upstream.close());
  return upstream;
}

function query(options: { id?: number; type?: number; class?: number; udpSize?: number; name?: string } = {}): Buffer {
  return writeQuery({
    id: options.id ?? 4711,
    question: {
      name: { labels: (options.name ?? 'www.example.com').split('.') },
      type: options.type ?? TYPE.A,
      class: options.class ?? 1,
    },
    recursionDesired: true,
    authenticData: false,
    checkingDisabled: false,
    edns: options.udpSize === undefined ? undefined : { udpSize: options.udpSize, dnssecOk: false },
  });
}

function read(bytes: Uint8Array | undefined): Message {
  const message = bytes && readMessage(bytes);
  assert.ok(message);
  return message;
}

test('a question is asked upstream under another id and from changing ports, its answer comes back', async (t) => {
  const upstream = await startUpstream(t, normal);
  const { port } = await setUp(t, [upstream]);
  for (let id = 0; id < 20; id++) {
    const answer = read(await askOverUdp(LISTEN, port, query({ id }), OPEN_SLOT));
    assert.equal(answer.id, id);
    assert.deepEqual([...(answer.records[0]?.data ?? [])], [192, 0, 2, 55]);
  }
  assert.ok(new Set(upstream.queries.map((asked) => asked.port)).size >= 15);
  assert.ok(new Set(upstream.queries.map((asked) => read(asked.bytes).id)).size >= 15);
  const [overTcp] = await askOverTcp(LISTEN, port, [query({ id: 99 })], OPEN_SLOT);
  assert.equal(read(overTcp).id, 99);
});

test('a slot without internet gets a final answer at once, and nothing is asked upstream', async (t) => {
  const upstream = await startUpstream(t, normal);
  const { port } = await setUp(t, [upstream]);
  const answers = [
    await askOverUdp(LISTEN, port, query(), CLOSED_SLOT),
    ...(await askOverTcp(LISTEN, port, [query()], CLOSED_SLOT)),
  ];
  for (const answer of answers) assert.equal(read(answer).rcode, RCODE.nxDomain);
  assert.equal(upstream.queries.length, 0);
});

test('an address that is no slot is refused', async (t) => {
  const upstream = await startUpstream(t, normal);
  const { port } = await setUp(t, [upstream]);
  assert.equal(read(await askOverUdp(LISTEN, port, query(), '127.0.0.9')).rcode, RCODE.refused);
  assert.equal(upstream.queries.length, 0);
});

test('a policy that closes while the upstream is asked holds for the answer', async (t) => {
  const { promise: asked, resolve } = Promise.withResolvers<void>();
  const upstream = await startUpstream(t, (bytes) => {
    resolve();
    return [answerTo(bytes, '192.0.2.55')];
  });
  const { port, policies } = await setUp(t, [upstream]);
  const answer = askOverUdp(LISTEN, port, query(), OPEN_SLOT);
  policies.set(OPEN_SLOT, { internet: true });
  await asked;
  policies.set(OPEN_SLOT, { internet: false });
  assert.equal(read(await answer).rcode, RCODE.nxDomain);
});

test('when the first upstream is silent or refuses, the second one answers', async (t) => {
  const second = await startUpstream(t, normal);
  const refusing = await startUpstream(t, (bytes) => {
    const answer = answerTo(bytes, '192.0.2.66');
    answer.writeUInt16BE(0x8185, 2);
    return [answer];
  });
  for (const first of [await startUpstream(t, silent), refusing]) {
    const { port } = await setUp(t, [first, second]);
    const answer = read(await askOverUdp(LISTEN, port, query(), OPEN_SLOT));
    assert.deepEqual([...(answer.records[0]?.data ?? [])], [192, 0, 2, 55]);
  }
});

test('without an upstream that answers, the failure comes soon', async (t) => {
  const closedPort = await unusedPort();
  const none: Upstream = { address: '127.0.0.1', port: closedPort };
  for (const upstreams of [[none, none], [await startUpstream(t, silent)], []]) {
    const { port } = await setUp(t, upstreams);
    const started = performance.now();
    assert.equal(read(await askOverUdp(LISTEN, port, query(), OPEN_SLOT)).rcode, RCODE.servFail);
    assert.ok(performance.now() - started < 2_000);
  }
});

test('forged and malformed packets from the upstream are passed over', async (t) => {
  const upstream = await startUpstream(t, (bytes) => {
    const good = answerTo(bytes, '192.0.2.55');
    const wrongId = Buffer.from(answerTo(bytes, '192.0.2.66'));
    wrongId.writeUInt16BE((wrongId.readUInt16BE(0) + 1) & 0xffff, 0);
    const wrongName = Buffer.from(answerTo(bytes, '192.0.2.66'));
    wrongName.write('x', 13);
    return [wrongId, wrongName, Buffer.from('junk'), good];
  });
  const { port } = await setUp(t, [upstream]);
  const answer = read(await askOverUdp(LISTEN, port, query(), OPEN_SLOT));
  assert.deepEqual([...(answer.records[0]?.data ?? [])], [192, 0, 2, 55]);
});

test('a truncated answer is fetched again over TCP, and truncated for a guest that takes only little', async (t) => {
  const upstream = await startUpstream(t, (bytes, transport) => {
    const answer = answerTo(bytes, '192.0.2.55', transport === 'tcp' ? 60 : 1);
    if (transport === 'udp') answer.writeUInt16BE(0x8380, 2);
    return [answer];
  });
  const { port } = await setUp(t, [upstream]);
  const large = read(await askOverUdp(LISTEN, port, query({ udpSize: 4096 }), OPEN_SLOT));
  assert.equal(large.records.length, 60);
  assert.equal(large.truncated, false);
  const small = await askOverUdp(LISTEN, port, query(), OPEN_SLOT);
  assert.ok(small.length <= 512);
  assert.equal(read(small).truncated, true);
  const [full] = await askOverTcp(LISTEN, port, [query()], OPEN_SLOT);
  assert.equal(read(full).records.length, 60);
});

test('several questions on one connection are all answered', async (t) => {
  const upstream = await startUpstream(t, normal);
  const { port } = await setUp(t, [upstream]);
  const answers = await askOverTcp(
    LISTEN,
    port,
    [1, 2, 3, 4].map((id) => query({ id })),
    OPEN_SLOT,
  );
  assert.deepEqual(answers.map((answer) => read(answer).id).sort(), [1, 2, 3, 4]);
});

test('one slot cannot have more than its share of questions outstanding', async (t) => {
  const upstream = await startUpstream(t, silent);
  const { port, policies } = await setUp(t, [upstream], { hedgeMs: 5_000, deadMs: 1_500, slowMs: 1_500 });
  policies.set('127.0.0.4', { internet: true });
  const started = performance.now();
  const times = await Promise.all(
    Array.from({ length: 100 }, async (_, id) => {
      assert.equal(read(await askOverUdp(LISTEN, port, query({ id }), OPEN_SLOT)).rcode, RCODE.servFail);
      return performance.now() - started;
    }),
  );
  assert.equal(upstream.queries.length, 64);
  assert.equal(times.filter((time) => time < 1_400).length, 36);
});

test('what is no plain question for a name is refused without asking', async (t) => {
  const upstream = await startUpstream(t, normal);
  const { port } = await setUp(t, [upstream]);
  const notify = query();
  notify.writeUInt16BE(0x2100, 2);
  const noQuestion = Buffer.from('000701000000000000000000', 'hex');
  const cases: [Buffer, number][] = [
    [query({ type: TYPE.AXFR }), RCODE.refused],
    [query({ class: 3 }), RCODE.refused],
    [notify, RCODE.notImp],
    [noQuestion, RCODE.formErr],
  ];
  for (const [bytes, rcode] of cases) {
    assert.equal(read(await askOverUdp(LISTEN, port, bytes, OPEN_SLOT)).rcode, rcode);
  }
  assert.equal(upstream.queries.length, 0);
});

test('junk and answers get no answer, and the forwarder lives on', async (t) => {
  const upstream = await startUpstream(t, normal);
  const { port } = await setUp(t, [upstream]);
  await assert.rejects(askOverTcp(LISTEN, port, [Buffer.from('junk')], OPEN_SLOT), /closed/);
  await assert.rejects(askOverTcp(LISTEN, port, [Buffer.alloc(5_000)], OPEN_SLOT), /closed|ECONNRESET/);
  await assert.rejects(askOverTcp(LISTEN, port, [answerTo(query(), '192.0.2.1')], OPEN_SLOT), /closed/);
  assert.equal(read(await askOverUdp(LISTEN, port, query(), OPEN_SLOT)).rcode, RCODE.noError);
});

test('nothing of a question but the question goes upstream', async (t) => {
  const upstream = await startUpstream(t, normal);
  const { port } = await setUp(t, [upstream]);
  const secret = Buffer.from('smuggled');
  const padded = Buffer.concat([query({ udpSize: 4096 }), secret]);
  await askOverUdp(LISTEN, port, padded, OPEN_SLOT);
  assert.equal(upstream.queries[0]?.bytes.includes(secret), false);
});

test('a taken port is no obstacle', async (t) => {
  const holder = createServer();
  await new Promise<void>((resolve) => holder.listen(0, LISTEN, resolve));
  t.after(() => holder.close());
  const bound = holder.address();
  assert.ok(typeof bound === 'object' && bound !== null);
  const { port } = await setUp(t, [], TIMES, bound.port);
  assert.notEqual(port, bound.port);
  assert.equal(read(await askOverUdp(LISTEN, port, query(), CLOSED_SLOT)).rcode, RCODE.nxDomain);
});

test('close ends questions under way', async (t) => {
  const upstream = await startUpstream(t, silent);
  const { forwarder, port } = await setUp(t, [upstream], { hedgeMs: 5_000, deadMs: 60_000, slowMs: 60_000 });
  const asked = askOverTcp(LISTEN, port, [query()], OPEN_SLOT);
  asked.catch(() => {});
  while (upstream.queries.length === 0) await new Promise((resolve) => setTimeout(resolve, 10));
  await forwarder.close();
  await assert.rejects(asked);
});

async function unusedPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, LISTEN, resolve));
  const bound = server.address();
  await new Promise((resolve) => server.close(resolve));
  assert.ok(typeof bound === 'object' && bound !== null);
  return bound.port;
}
