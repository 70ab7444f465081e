import { encodeName, type Name, readName, sameName } from './name.ts';

/** DNS messages (RFC 1035 §4, EDNS RFC 6891). Reading never throws and never trusts a length or a count. */

export interface Question {
  readonly name: Name;
  readonly type: number;
  readonly class: number;
}

export interface Edns {
  /** the largest UDP answer that the sender takes, in bytes */
  readonly udpSize: number;
  readonly dnssecOk: boolean;
}

export interface Message {
  readonly id: number;
  readonly isResponse: boolean;
  readonly opcode: number;
  readonly truncated: boolean;
  readonly recursionDesired: boolean;
  readonly authenticData: boolean;
  readonly checkingDisabled: boolean;
  readonly rcode: number;
  readonly questions: readonly Question[];
  readonly records: readonly ResourceRecord[];
  readonly edns: Edns | undefined;
}

export interface ResourceRecord {
  readonly name: Name;
  readonly type: number;
  readonly class: number;
  /** seconds */
  readonly ttl: number;
  readonly data: Uint8Array;
}

export const TYPE = { A: 1, AAAA: 28, OPT: 41, IXFR: 251, AXFR: 252 } as const;
export const CLASS_IN = 1;
export const RCODE = { noError: 0, formErr: 1, servFail: 2, nxDomain: 3, notImp: 4, refused: 5 } as const;

export const HEADER_SIZE = 12;
const MAX_QUESTIONS = 1;

/** The message, or undefined when any part of it is malformed. Bytes after the last record are ignored. */
export function readMessage(bytes: Uint8Array): Message | undefined {
  if (bytes.length < HEADER_SIZE) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const flags = view.getUint16(2);
  const questionCount = view.getUint16(4);
  // Nobody sends more than one question; a response to a malformed query may have none.
  if (questionCount > MAX_QUESTIONS) return undefined;
  let offset = HEADER_SIZE;
  const questions: Question[] = [];
  for (let i = 0; i < questionCount; i++) {
    // Nothing stands before the first question that its name could point to.
    const name = readName(bytes, offset, 'refused');
    if (name === undefined || name.end + 4 > bytes.length) return undefined;
    questions.push({
      name: { labels: name.labels },
      type: view.getUint16(name.end),
      class: view.getUint16(name.end + 2),
    });
    offset = name.end + 4;
  }
  const records: ResourceRecord[] = [];
  const recordCount = view.getUint16(6) + view.getUint16(8) + view.getUint16(10);
  // The counts are only promises: every record takes bytes, so the message's end bounds the loop.
  for (let i = 0; i < recordCount; i++) {
    const name = readName(bytes, offset, 'allowed');
    if (name === undefined || name.end + 10 > bytes.length) return undefined;
    const start = name.end + 10;
    const end = start + view.getUint16(name.end + 8);
    if (end > bytes.length) return undefined;
    records.push({
      name: { labels: name.labels },
      type: view.getUint16(name.end),
      class: view.getUint16(name.end + 2),
      ttl: view.getUint32(name.end + 4),
      data: bytes.subarray(start, end),
    });
    offset = end;
  }
  const options = records.filter((record) => record.type === TYPE.OPT);
  if (options.length > 1) return undefined;
  const [option] = options;
  return {
    id: view.getUint16(0),
    isResponse: (flags & 0x8000) !== 0,
    opcode: (flags >> 11) & 0xf,
    truncated: (flags & 0x0200) !== 0,
    recursionDesired: (flags & 0x0100) !== 0,
    authenticData: (flags & 0x0020) !== 0,
    checkingDisabled: (flags & 0x0010) !== 0,
    rcode: flags & 0xf,
    questions,
    records,
    edns: option === undefined ? undefined : { udpSize: option.class, dnssecOk: (option.ttl & 0x8000) !== 0 },
  };
}

export interface QueryParts {
  readonly id: number;
  readonly question: Question;
  readonly recursionDesired: boolean;
  readonly authenticData: boolean;
  readonly checkingDisabled: boolean;
  readonly edns: Edns | undefined;
}

/** A query made anew from its parts, so that nothing else of a guest's message goes upstream. */
export function writeQuery(parts: QueryParts): Buffer {
  const flags =
    (parts.recursionDesired ? 0x0100 : 0) | (parts.authenticData ? 0x0020 : 0) | (parts.checkingDisabled ? 0x0010 : 0);
  return write(parts.id, flags, parts.question, parts.edns);
}

/** An answer of our own: no records, only a code. */
export function writeReply(
  query: Message,
  rcode: number,
  options: { readonly truncated?: boolean; readonly udpSize: number },
): Buffer {
  const flags =
    0x8000 |
    (query.opcode << 11) |
    (options.truncated === true ? 0x0200 : 0) |
    (query.recursionDesired ? 0x0100 : 0) |
    0x0080 |
    (query.checkingDisabled ? 0x0010 : 0) |
    rcode;
  const edns = query.edns === undefined ? undefined : { udpSize: options.udpSize, dnssecOk: query.edns.dnssecOk };
  return write(query.id, flags, query.questions[0], edns);
}

function write(id: number, flags: number, question: Question | undefined, edns: Edns | undefined): Buffer {
  const header = Buffer.alloc(HEADER_SIZE);
  header.writeUInt16BE(id, 0);
  header.writeUInt16BE(flags, 2);
  header.writeUInt16BE(question === undefined ? 0 : 1, 4);
  header.writeUInt16BE(edns === undefined ? 0 : 1, 10);
  const parts: Buffer[] = [header];
  if (question !== undefined) {
    const fixed = Buffer.alloc(4);
    fixed.writeUInt16BE(question.type, 0);
    fixed.writeUInt16BE(question.class, 2);
    parts.push(encodeName(question.name), fixed);
  }
  if (edns !== undefined) {
    const option = Buffer.alloc(11);
    option.writeUInt16BE(TYPE.OPT, 1);
    option.writeUInt16BE(edns.udpSize, 3);
    option.writeUInt32BE(edns.dnssecOk ? 0x8000 : 0, 5);
    parts.push(option);
  }
  return Buffer.concat(parts);
}

/** Whether `response` answers exactly this question under this id. */
export function answers(response: Message, id: number, question: Question): boolean {
  const [echo] = response.questions;
  return (
    response.isResponse &&
    response.id === id &&
    response.opcode === 0 &&
    echo !== undefined &&
    echo.type === question.type &&
    echo.class === question.class &&
    sameName(echo.name, question.name)
  );
}

/** A copy under another id. */
export function withId(message: Uint8Array, id: number): Buffer {
  const copy = Buffer.from(message);
  copy.writeUInt16BE(id, 0);
  return copy;
}
