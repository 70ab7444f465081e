import { type ClientRequest, type IncomingMessage, type InformationEvent, request } from 'node:http';
import { constants, type ServerHttp2Stream } from 'node:http2';
import type { Duplex } from 'node:stream';
import { type RawHeaders, toPairs } from '../../proxy/headers/raw-headers.ts';
import { relayedHeaders } from '../../proxy/headers/response-headers.ts';
import { sendHead } from '../../proxy/sockets/send-head.ts';
import { hasHeader, toFields, toHttp1, toHttp2 } from './headers.ts';

const { NGHTTP2_FLAG_END_STREAM, NGHTTP2_NO_ERROR, NGHTTP2_PROTOCOL_ERROR } = constants;

export interface ExchangeOptions {
  /** header fields of the request, as they came */
  readonly rawHeaders: RawHeaders;
  /** of the HEADERS frame */
  readonly flags: number;
  /** bytes of header lines that an answer may have */
  readonly maxHeaderBytes: number;
  /** how long the rest of a request is read and dropped after its answer */
  readonly drainMs: number;
  /** opens a connection to the HTTP/1.1 server */
  readonly connect: () => Duplex;
}

/**
 * Carries one HTTP/2 request to the HTTP/1.1 server and its answer back: heads, bodies with back-pressure, trailers,
 * interim answers. A stream that the client resets breaks the connection to the server; a connection that breaks resets
 * the stream, so that nothing that ended short looks complete on either side.
 */
export function exchange(stream: ServerHttp2Stream, options: ExchangeOptions): void {
  // Every error closes the stream, and its end is what counts.
  stream.on('error', () => {});
  const bodyless = (options.flags & NGHTTP2_FLAG_END_STREAM) !== 0;
  const { method, path, headers } = toHttp1(options.rawHeaders);
  const chunked = !bodyless && !hasHeader(headers, 'content-length');
  if (chunked) headers.push('transfer-encoding', 'chunked');
  let outgoing: ClientRequest;
  try {
    outgoing = request({
      ...{ method, path, headers, maxHeaderSize: options.maxHeaderBytes },
      createConnection: options.connect,
    });
  } catch {
    // Not a method or a path that HTTP/1.1 could say.
    stream.close(NGHTTP2_PROTOCOL_ERROR);
    return;
  }
  outgoing.maxHeadersCount = 0;
  let answered = false;
  const breakStream = () => {
    // Not `close`, which sends the end of the body before the reset.
    stream.destroy(new Error('the answer broke off'));
    outgoing.destroy();
  };
  stream.once('aborted', () => outgoing.destroy());
  stream.once('close', () => outgoing.destroy());
  outgoing.on('error', () => {
    if (!answered) breakStream();
  });
  outgoing.on('information', (information) => inform(stream, information));
  outgoing.once('response', (answer) => {
    answered = true;
    passAnswer(answer, stream, options.drainMs, breakStream);
  });
  // The server takes no upgrade that nobody asked for, and no answer may be missing.
  outgoing.once('close', () => {
    if (!answered) breakStream();
  });
  passBody(stream, outgoing, { bodyless, chunked });
}

function passBody(
  stream: ServerHttp2Stream,
  outgoing: ClientRequest,
  { bodyless, chunked }: { readonly bodyless: boolean; readonly chunked: boolean },
): void {
  if (bodyless) {
    outgoing.end();
    return;
  }
  let trailers: RawHeaders = [];
  stream.once('trailers', (_headers: object, _flags: number, raw?: RawHeaders) => {
    trailers = raw ?? [];
  });
  sendHead(outgoing);
  stream.pipe(outgoing, { end: false });
  stream.once('end', () => {
    // A reset ends the stream too.
    if (stream.aborted || stream.rstCode !== NGHTTP2_NO_ERROR) {
      outgoing.destroy();
      return;
    }
    try {
      if (chunked && trailers.length > 0) outgoing.addTrailers(toPairs(trailers));
    } catch {
      // Fields that HTTP/1.1 could not carry.
      stream.close(NGHTTP2_PROTOCOL_ERROR);
      return;
    }
    outgoing.end();
  });
}

function inform(stream: ServerHttp2Stream, { statusCode, rawHeaders }: InformationEvent): void {
  if (stream.destroyed || stream.closed || stream.headersSent) return;
  try {
    stream.additionalHeaders({ ':status': statusCode, ...toFields(relayedHeaders(rawHeaders, false, false)) });
  } catch {
    // An interim answer may be left out.
  }
}

function passAnswer(
  answer: IncomingMessage,
  stream: ServerHttp2Stream,
  drainMs: number,
  breakStream: () => void,
): void {
  if (stream.destroyed || stream.closed) {
    answer.destroy();
    return;
  }
  const chunked = answer.headers['transfer-encoding'] !== undefined;
  const head = toHttp2(answer.statusCode ?? 0, answer.rawHeaders, chunked);
  if (chunked) {
    stream.once('wantTrailers', () => {
      try {
        stream.sendTrailers(toFields(relayedHeaders(answer.rawTrailers, true, false)));
      } catch {
        breakStream();
      }
    });
  }
  answer.once('error', breakStream);
  answer.once('close', () => {
    if (!answer.readableEnded) breakStream();
  });
  // Known to Node, but not to its declarations: the answer has its own Date, or none.
  const options = { waitForTrailers: chunked, sendDate: false };
  try {
    stream.respond(head, options);
  } catch {
    breakStream();
    return;
  }
  answer.once('end', () => {
    if (!stream.writableEnded) stream.end();
    if (!stream.readableEnded) waive(stream, drainMs);
  });
  answer.pipe(stream, { end: false });
}

/** The rest of a request that has its answer is dropped; a client that goes on sending is told to stop (RFC 9113 §8.1). */
function waive(stream: ServerHttp2Stream, drainMs: number): void {
  stream.unpipe();
  stream.resume();
  const timer = setTimeout(() => stream.close(NGHTTP2_NO_ERROR), drainMs);
  stream.once('end', () => clearTimeout(timer));
  stream.once('close', () => clearTimeout(timer));
}
