import { HEADER_SIZE, readMessage } from '../message.ts';

/** An answer to a query as an upstream writes it: the question, and `count` A records for the same name. */
export function answerTo(query: Buffer, address: string, count = 1): Buffer {
  const question = readMessage(query)?.questions[0];
  if (question === undefined) throw new Error('not a query');
  const questionEnd = HEADER_SIZE + question.name.labels.reduce((size, label) => size + 1 + label.length, 1) + 4;
  const record = Buffer.alloc(16);
  record.writeUInt16BE(0xc000 | HEADER_SIZE, 0);
  record.writeUInt16BE(1, 2);
  record.writeUInt16BE(1, 4);
  record.writeUInt32BE(60, 6);
  record.writeUInt16BE(4, 10);
  record.set(address.split('.').map(Number), 12);
  const answer = Buffer.concat([query.subarray(0, questionEnd), ...Array.from({ length: count }, () => record)]);
  answer.writeUInt16BE(0x8180, 2);
  answer.writeUInt16BE(count, 6);
  answer.writeUInt16BE(0, 10);
  return answer;
}
