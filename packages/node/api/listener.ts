import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { Api } from './api.ts';
import { errorAnswer } from './http/error-answer.ts';

/** What is still read of a body that nobody wants, so that the client gets to read the answer. */
const DRAIN_BYTES = 16 * 1024 * 1024;
const DRAIN_MS = 10_000;

/** Serves the API on a server of node:http. The front door calls it with requests of the control plane. */
export function createApiListener(api: Api, log: Logger): RequestListener {
  return (incoming, outgoing) => {
    outgoing.once('finish', () => drain(incoming));
    answer(api, incoming)
      .then((response) => send(response, outgoing))
      .catch((error: unknown) => {
        log.error('answer could not be sent', { error });
        outgoing.destroy();
      });
  };
}

async function answer(api: Api, incoming: IncomingMessage): Promise<Response> {
  let request: Request;
  try {
    request = toRequest(incoming);
  } catch (error) {
    // Methods that the web form does not know (TRACE) and targets that are no URL.
    const refusal = new AenvError('invalid_request', 'the request line cannot be understood', { cause: error });
    return errorAnswer(refusal, '');
  }
  return api.fetch(request, {
    peer: incoming.socket.remoteAddress,
    // Leaving the loop early must not destroy the connection: the answer still has to go out on it.
    body: incoming.iterator({ destroyOnReturn: false }),
  });
}

function toRequest(incoming: IncomingMessage): Request {
  const headers = new Headers();
  const raw = incoming.rawHeaders;
  for (let index = 0; index + 1 < raw.length; index += 2) headers.append(raw[index] ?? '', raw[index + 1] ?? '');
  // The authority does not matter here, so a client cannot make the request fail with it.
  const target = (incoming.url ?? '/').replace(/^https?:\/\/[^/?#]*/i, '');
  const path = target.startsWith('/') ? target : `/${target}`;
  return new Request(`http://node.internal${path}`, { method: incoming.method ?? 'GET', headers });
}

async function send(response: Response, outgoing: ServerResponse): Promise<void> {
  // Whoever owns the server may have answered already, for example a body that came too slowly.
  if (outgoing.headersSent || outgoing.destroyed) return;
  const content = response.body === null ? undefined : Buffer.from(await response.arrayBuffer());
  const headers: Record<string, string | number> = Object.fromEntries(response.headers);
  if (content !== undefined) headers['content-length'] = content.length;
  outgoing.writeHead(response.status, headers);
  outgoing.end(content);
}

function drain(incoming: IncomingMessage): void {
  if (incoming.complete || incoming.destroyed) return;
  let left = DRAIN_BYTES;
  const giveUp = () => incoming.socket.destroy();
  const timer = setTimeout(giveUp, DRAIN_MS);
  timer.unref();
  incoming.on('data', (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0) giveUp();
  });
  incoming.once('close', () => clearTimeout(timer));
  incoming.once('end', () => clearTimeout(timer));
  incoming.resume();
}
