import assert from 'node:assert/strict';
import test from 'node:test';
import fc from 'fast-check';
import { answers, readMessage, TYPE, withId, writeQuery, writeReply } from './message.ts';
import { answerTo } from './testing/answers.ts';

const own = { noNullPrototype: true };
const question = { name: { labels: ['example', 'com'] }, type: TYPE.A, class: 1 };
const parts = fc.record(
  {
    id: fc.nat({ max: 0xffff }),
    question: fc.record(
      {
        name: fc.array(fc.stringMatching(/^[a-zA-Z0-9-]{1,20}$/), { maxLength: 8 }).map((labels) => ({ labels })),
        type: fc.nat({ max: 0xffff }),
        class: fc.nat({ max: 0xffff }),
      },
      own,
    ),
    recursionDesired: fc.boolean(),
    authenticData: fc.boolean(),
    checkingDisabled: fc.boolean(),
    edns: fc.option(fc.record({ udpSize: fc.nat({ max: 0xffff }), dnssecOk: fc.boolean() }, own), { nil: undefined }),
  },
  own,
);
const plain = {
  id: 7,
  question,
  recursionDesired: true,
  authenticData: false,
  checkingDisabled: false,
  edns: undefined,
};

test('a query is read as it was written', () => {
  fc.assert(
    fc.property(parts, (query) => {
      const message = readMessage(writeQuery(query));
      assert.ok(message);
      const { id, recursionDesired, authenticData, checkingDisabled, edns } = message;
      assert.deepEqual(
        { id, question: message.questions[0], recursionDesired, authenticData, checkingDisabled, edns },
        query,
      );
      assert.equal(message.isResponse, false);
    }),
  );
});

test('a reply of our own answers its query and keeps what the client must see again', () => {
  fc.assert(
    fc.property(parts, fc.nat({ max: 15 }), fc.boolean(), (query, rcode, truncated) => {
      const asked = readMessage(writeQuery(query));
      assert.ok(asked);
      const reply = readMessage(writeReply(asked, rcode, { truncated, udpSize: 1232 }));
      assert.ok(reply);
      assert.ok(answers(reply, query.id, query.question));
      assert.equal(reply.rcode, rcode);
      assert.equal(reply.truncated, truncated);
      assert.equal(reply.recursionDesired, query.recursionDesired);
      assert.equal(reply.edns === undefined, query.edns === undefined);
    }),
  );
});

test('only a response with the same id and the same question is an answer', () => {
  const good = answerTo(writeQuery(plain), '192.0.2.1');
  const read = (bytes: Buffer) => {
    const message = readMessage(bytes);
    assert.ok(message);
    return message;
  };
  assert.ok(answers(read(good), 7, question));
  assert.ok(answers(read(good), 7, { ...question, name: { labels: ['EXAMPLE', 'com'] } }));
  assert.ok(!answers(read(withId(good, 8)), 7, question));
  assert.ok(!answers(read(writeQuery(plain)), 7, question));
  assert.ok(!answers(read(good), 7, { ...question, type: TYPE.AAAA }));
  assert.ok(!answers(read(good), 7, { ...question, name: { labels: ['example', 'net'] } }));
});

test('counts that promise more than there is, and lengths beyond the end, are refused', () => {
  const good = answerTo(writeQuery(plain), '192.0.2.1');
  for (const offset of [6, 8, 10]) {
    const bad = Buffer.from(good);
    bad.writeUInt16BE(0xffff, offset);
    assert.equal(readMessage(bad), undefined);
  }
  const twoQuestions = Buffer.from(good);
  twoQuestions.writeUInt16BE(2, 4);
  assert.equal(readMessage(twoQuestions), undefined);
  for (let size = 0; size < good.length; size++) assert.equal(readMessage(good.subarray(0, size)), undefined);
  assert.ok(readMessage(good));
});

test('a name of the question that points anywhere is refused', () => {
  const query = Buffer.concat([Buffer.from('000701000001000000000000', 'hex'), Buffer.of(0xc0, 0, 0, 1, 0, 1)]);
  assert.equal(readMessage(query), undefined);
});

test('arbitrary and damaged messages are read or refused, never more', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 1500 }), (bytes) => void readMessage(bytes)),
    { numRuns: 2_000 },
  );
  const good = answerTo(writeQuery({ ...plain, edns: { udpSize: 1232, dnssecOk: true } }), '192.0.2.1');
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.nat({ max: good.length - 1 }), fc.nat({ max: 255 })), { maxLength: 6 }),
      (edits) => {
        const bytes = Buffer.from(good);
        for (const [at, value] of edits) bytes[at] = value;
        readMessage(bytes);
      },
    ),
    { numRuns: 2_000 },
  );
});

test('a large message of nothing but pointers is dealt with quickly', () => {
  const records = Buffer.alloc(65_000);
  for (let at = 0; at + 12 <= records.length; at += 12) records.writeUInt16BE(0xc000 | 12, at);
  const header = Buffer.from('000781800000ffff00000000', 'hex');
  const started = performance.now();
  readMessage(Buffer.concat([header, records]));
  assert.ok(performance.now() - started < 1_000);
});
