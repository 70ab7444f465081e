import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Export } from '../export.ts';
import { Input } from '../protocol/input.ts';
import { BASE_ALLOCATION, EXPORT_FLAG, INFO, OPTION, REPLY } from '../protocol/numbers.ts';
import { MemoryVolume } from '../testing/memory-volume.ts';
import { infoData, metaContextData, optionBytes, u32 } from '../testing/wire.ts';
import { Negotiation, type Outcome } from './negotiation.ts';

const RUNS = process.env.AENV_SOAK === '1' ? 20_000 : 300;
const HELLO = u32(3);
// Nothing is read or written before a negotiation is over.
const VOLUME = new MemoryVolume(1 << 20);
const OTHER = new MemoryVolume(1 << 20, true);

function negotiate(bytes: Uint8Array, clientFlags: Buffer = HELLO) {
  const disk = new Export('disk', VOLUME);
  const other = new Export('other', OTHER);
  const exports = new Map([
    ['', disk],
    ['disk', disk],
    ['other', other],
  ]);
  const sent: Buffer[] = [];
  const negotiation = new Negotiation(
    (name) => exports.get(name),
    () => ['disk', 'other'],
    (reply) => sent.push(reply),
  );
  const input = new Input();
  input.push(Buffer.concat([clientFlags, bytes]));
  const outcome = negotiation.advance(input);
  return { outcome, replies: parse(Buffer.concat(sent)), sent: Buffer.concat(sent), input };
}

function parse(bytes: Buffer): { option: number; type: number; data: Buffer }[] {
  const replies = [];
  for (let at = 0; at + 20 <= bytes.length; ) {
    const length = bytes.readUInt32BE(at + 16);
    replies.push({
      option: bytes.readUInt32BE(at + 8),
      type: bytes.readUInt32BE(at + 12),
      data: bytes.subarray(at + 20, at + 20 + length),
    });
    at += 20 + length;
  }
  return replies;
}

const session = (outcome: Outcome) => (outcome.kind === 'agreed' ? outcome.session : undefined);
const types = (replies: readonly { type: number }[]) => replies.map(({ type }) => type);

test('GO tells size, flags and block sizes, and agrees', () => {
  const { outcome, replies } = negotiate(optionBytes(OPTION.go, infoData('disk', [INFO.name])));
  assert.equal(session(outcome)?.export.name, 'disk');
  assert.deepEqual(types(replies), [REPLY.info, REPLY.info, REPLY.info, REPLY.ack]);
  const [size, name, blocks] = replies;
  assert.equal(size?.data.readBigUInt64BE(2), 1n << 20n);
  const flags = size?.data.readUInt16BE(10) ?? 0;
  assert.equal(flags & EXPORT_FLAG.multiConn, EXPORT_FLAG.multiConn);
  assert.equal(flags & EXPORT_FLAG.dontFragment, 0);
  assert.equal(name?.data.toString('latin1', 2), 'disk');
  assert.deepEqual(
    [2, 6, 10].map((at) => blocks?.data.readUInt32BE(at)),
    [512, 4096, 32 * 1024 * 1024],
  );
});

test('the empty name is the default export; a wrong one is refused and may be followed by a right one', () => {
  const { outcome, replies } = negotiate(
    Buffer.concat([optionBytes(OPTION.go, infoData('nothing')), optionBytes(OPTION.go, infoData(''))]),
  );
  assert.equal(replies[0]?.type, REPLY.unknownExport);
  assert.equal(session(outcome)?.export.name, 'disk');
});

test('a read-only export takes nothing that changes it', () => {
  const { outcome } = negotiate(optionBytes(OPTION.go, infoData('other')));
  const flags = session(outcome)?.export.flags(false) ?? 0;
  assert.equal(flags & EXPORT_FLAG.readOnly, EXPORT_FLAG.readOnly);
  assert.equal(flags & (EXPORT_FLAG.trim | EXPORT_FLAG.writeZeroes | EXPORT_FLAG.fua), 0);
});

test('EXPORT_NAME answers with or without 124 zeros, as agreed, and goes away for a wrong name', () => {
  const option = optionBytes(OPTION.exportName, Buffer.from('disk'));
  assert.equal(negotiate(option).sent.length, 10);
  assert.equal(negotiate(option, u32(1)).sent.length, 134);
  assert.equal(negotiate(optionBytes(OPTION.exportName, Buffer.from('no'))).outcome.kind, 'closed');
});

test('INFO leaves the negotiation open, LIST names all exports, ABORT is acknowledged', () => {
  const { outcome, replies } = negotiate(
    Buffer.concat([
      optionBytes(OPTION.info, infoData('disk')),
      optionBytes(OPTION.list),
      optionBytes(OPTION.abort),
      optionBytes(OPTION.list),
    ]),
  );
  assert.equal(outcome.kind, 'closed');
  assert.deepEqual(types(replies), [
    ...[REPLY.info, REPLY.info, REPLY.ack],
    ...[REPLY.server, REPLY.server, REPLY.ack],
    REPLY.ack,
  ]);
  assert.equal(replies[3]?.data.toString('latin1', 4), 'disk');
});

test('block status is agreed on only after structured replies, for the export that is chosen', () => {
  const set = (name: string) => optionBytes(OPTION.setMetaContext, metaContextData(name, [BASE_ALLOCATION, 'x:y']));
  const structured = optionBytes(OPTION.structuredReply);
  const go = optionBytes(OPTION.go, infoData('disk'));
  const early = negotiate(Buffer.concat([set('disk'), structured, go]));
  assert.equal(early.replies[0]?.type, REPLY.invalid);
  assert.equal(session(early.outcome)?.allocation, false);
  const good = negotiate(Buffer.concat([structured, set('disk'), go]));
  assert.deepEqual(types(good.replies.slice(0, 3)), [REPLY.ack, REPLY.metaContext, REPLY.ack]);
  assert.deepEqual([session(good.outcome)?.allocation, session(good.outcome)?.structured], [true, true]);
  const elsewhere = negotiate(Buffer.concat([structured, set('other'), go]));
  assert.equal(session(elsewhere.outcome)?.allocation, false);
  const withdrawn = negotiate(
    Buffer.concat([structured, set('disk'), optionBytes(OPTION.setMetaContext, metaContextData('disk', [])), go]),
  );
  assert.equal(session(withdrawn.outcome)?.allocation, false);
});

test('listing of contexts knows the namespace, one name, and all', () => {
  for (const [queries, found] of [
    [[], true],
    [['base:'], true],
    [[BASE_ALLOCATION], true],
    [['qemu:'], false],
  ] as const) {
    const list = optionBytes(OPTION.listMetaContext, metaContextData('disk', queries));
    const { replies } = negotiate(Buffer.concat([optionBytes(OPTION.structuredReply), list]));
    assert.deepEqual(types(replies.slice(1)), found ? [REPLY.metaContext, REPLY.ack] : [REPLY.ack]);
  }
});

test('what is not known is refused by name, what is malformed as such, and the negotiation goes on', () => {
  const { outcome, replies } = negotiate(
    Buffer.concat([
      optionBytes(OPTION.startTls),
      optionBytes(77, Buffer.alloc(100)),
      optionBytes(OPTION.list, Buffer.alloc(1)),
      optionBytes(OPTION.go, Buffer.from([0, 0, 0, 9, 1])),
      optionBytes(OPTION.info, Buffer.concat([infoData('disk'), Buffer.alloc(1)])),
    ]),
  );
  assert.equal(outcome.kind, 'more');
  const { unsupported, invalid } = REPLY;
  assert.deepEqual(types(replies), [unsupported, unsupported, invalid, invalid, invalid]);
});

test('what cannot be the protocol ends it: other flags, other magic numbers, giant options, endless options', () => {
  assert.equal(negotiate(Buffer.alloc(0), u32(4)).outcome.kind, 'closed');
  assert.equal(negotiate(Buffer.alloc(16, 1)).outcome.kind, 'closed');
  const giant = optionBytes(OPTION.list);
  giant.writeUInt32BE(0xffffffff, 12);
  assert.equal(negotiate(giant).outcome.kind, 'closed');
  const endless = Buffer.concat(Array.from({ length: 300 }, () => optionBytes(OPTION.list)));
  assert.equal(negotiate(endless).outcome.kind, 'closed');
});

test('bytes that come one at a time make no difference', () => {
  const bytes = Buffer.concat([
    HELLO,
    optionBytes(OPTION.structuredReply),
    optionBytes(OPTION.setMetaContext, metaContextData('disk', [BASE_ALLOCATION])),
    optionBytes(OPTION.go, infoData('disk')),
  ]);
  const target = new Export('disk', new MemoryVolume(512));
  const negotiation = new Negotiation(
    () => target,
    () => [],
    () => {},
  );
  const input = new Input();
  let outcome: Outcome = { kind: 'more' };
  for (const byte of bytes) {
    assert.equal(outcome.kind, 'more');
    input.push(Buffer.from([byte]));
    outcome = negotiation.advance(input);
  }
  assert.equal(session(outcome)?.allocation, true);
});

test('random options and random bytes never throw', () => {
  const option = fc
    .tuple(fc.integer({ min: 0, max: 12 }), fc.uint8Array({ maxLength: 64 }))
    .map(([number, data]) => optionBytes(number, data));
  const part = fc.oneof(option, fc.uint8Array({ maxLength: 40 }));
  fc.assert(
    fc.property(fc.array(part, { maxLength: 12 }), (parts) => {
      const { outcome } = negotiate(Buffer.concat(parts));
      assert.ok(['more', 'closed', 'agreed'].includes(outcome.kind));
    }),
    { seed: 1, numRuns: RUNS },
  );
});
