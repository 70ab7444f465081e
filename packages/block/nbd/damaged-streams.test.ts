import assert from 'node:assert/strict';
import { Writable } from 'node:stream';
import { test } from 'node:test';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { damaged, fuzz, randomOf } from '../testing/fuzz.ts';
import { Export } from './export.ts';
import { Negotiation } from './negotiation/negotiation.ts';
import { Input } from './protocol/input.ts';
import { BASE_ALLOCATION, COMMAND, COMMAND_FLAG, OPTION } from './protocol/numbers.ts';
import { MemoryVolume } from './testing/memory-volume.ts';
import { infoData, metaContextData, optionBytes, requestBytes, u32, writeBytes } from './testing/wire.ts';
import { BufferPool } from './transmission/buffer-pool.ts';
import { ReplyStream } from './transmission/reply-stream.ts';
import { Transmission } from './transmission/transmission.ts';

/** Times that streams are damaged; in soak it is a minute. */
const TIMES = 250;
const SIZE = 1 << 20;
/** Bytes of memory that no stream may cost, beyond what it sends and what is allowed to be in flight. */
const MEMORY = 192 * 2 ** 20;

const HELLO = u32(3);
const structured = optionBytes(OPTION.structuredReply);
const allocation = optionBytes(OPTION.setMetaContext, metaContextData('disk', [BASE_ALLOCATION]));
const go = optionBytes(OPTION.go, infoData('disk', [0, 1, 3]));
const { read, flush, trim, writeZeroes, blockStatus, disconnect } = COMMAND;

/** Whole sessions as clients hold them: what is damaged are their bytes. */
const CORPUS: readonly Buffer[] = [
  [HELLO, optionBytes(OPTION.list), optionBytes(OPTION.info, infoData('disk')), optionBytes(OPTION.abort)],
  [HELLO, optionBytes(OPTION.exportName, Buffer.from('disk')), requestBytes({ type: read, length: 4096 })],
  [HELLO, structured, optionBytes(OPTION.listMetaContext, metaContextData('disk', ['base:', 'x:y'])), allocation, go],
  [
    ...[HELLO, structured, allocation, go],
    writeBytes(8192, Buffer.alloc(4096, 1), 1n),
    writeBytes(513, Buffer.alloc(1000, 2), 2n, COMMAND_FLAG.fua),
    requestBytes({ type: read, cookie: 3n, length: 128 << 10 }),
    requestBytes({ type: blockStatus, cookie: 4n, length: SIZE }),
    requestBytes({ type: writeZeroes, cookie: 5n, offset: 100n, length: 70_000, flags: COMMAND_FLAG.fastZero }),
    requestBytes({ type: trim, cookie: 6n, offset: 4096n, length: 65_536 }),
    requestBytes({ type: flush, cookie: 7n }),
    requestBytes({ type: disconnect, cookie: 8n }),
  ],
  [HELLO, go, ...Array.from({ length: 40 }, (_, at) => writeBytes(at * 4096, Buffer.alloc(4096, at), BigInt(at)))],
].map((parts) => Buffer.concat(parts));

/** Feeds a stream in pieces to what a connection is made of. @returns how it ended */
async function feed(bytes: Buffer, random: () => number): Promise<string> {
  const target = new Export('disk', new MemoryVolume(SIZE), 4 * SIZE);
  const socket = new Writable({ write: (_chunk, _encoding, done) => done() });
  const input = new Input();
  const negotiation = new Negotiation(
    (name) => (name === '' || name === 'disk' ? target : undefined),
    () => ['disk'],
    () => {},
  );
  const replies = new ReplyStream(socket, new BufferPool(0), (cost) => target.budget.give(cost));
  let transmission: Transmission | undefined;
  let end = 'more';
  for (let at = 0; at < bytes.length && end === 'more'; ) {
    const piece = 1 + Math.floor(random() * 20_000);
    input.push(bytes.subarray(at, at + piece));
    at += piece;
    if (transmission === undefined) {
      const outcome = negotiation.advance(input);
      if (outcome.kind === 'closed') end = 'closed';
      if (outcome.kind === 'agreed') transmission = new Transmission(outcome.session, replies, silentLogger, () => {});
    }
    if (transmission !== undefined) end = transmission.advance(input);
    // Answers leave, so what is blocked may go on.
    await new Promise(setImmediate);
    if (end === 'blocked') end = 'more';
  }
  while (transmission?.busy === true) await new Promise(setImmediate);
  transmission?.close();
  replies.close();
  await new Promise(setImmediate);
  assert.equal(target.budget.used, 0, 'what was taken was given back');
  return end;
}

test('sessions that are damaged at random are answered, refused or ended, in bounded memory', async () => {
  const ends = new Map<string, number>();
  const attempt = async (seed: number) => {
    const random = randomOf(seed);
    const stream = damaged(CORPUS[seed % CORPUS.length] ?? Buffer.alloc(0), random);
    const end = await feed(stream, random);
    ends.set(end, (ends.get(end) ?? 0) + 1);
  };
  await fuzz({ times: TIMES, memory: MEMORY, attempt });
  for (const end of ['more', 'closed', 'broken', 'finished']) assert.ok((ends.get(end) ?? 0) > 10, `${end} was seldom`);
});

test('the sessions as they are end in order', async () => {
  const ends = [];
  for (const session of CORPUS) ends.push(await feed(session, randomOf(7)));
  assert.deepEqual(ends, ['closed', 'more', 'more', 'finished', 'more']);
});
