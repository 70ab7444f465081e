import type { Server } from 'node:net';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';

export interface ListenAddress {
  /** an address of this host, or a name that resolves to one */
  readonly host: string;
  /** 0 takes any free port */
  readonly port: number;
}

/**
 * Makes the server listen.
 * @returns its URL, with the port that it got
 * @throws AenvError `port_in_use`, `config_invalid`
 */
export async function listenOn(server: Server, address: ListenAddress): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const onError = (error: NodeJS.ErrnoException) => reject(explained(error, address));
  server.once('error', onError);
  server.listen({ host: address.host, port: address.port, backlog: 1024 }, () => resolve());
  try {
    await promise;
  } finally {
    server.off('error', onError);
  }
  const bound = server.address();
  const port = typeof bound === 'object' && bound !== null ? bound.port : address.port;
  return `http://${inUrl(address.host)}:${port}`;
}

function explained(error: NodeJS.ErrnoException, { host, port }: ListenAddress): AenvError {
  const where = `${inUrl(host)}:${port}`;
  if (error.code === 'EADDRINUSE') {
    return new AenvError('port_in_use', `Another process listens on ${where}.`, { cause: error });
  }
  const why = error.code === 'EACCES' ? 'ports below 1024 need root' : 'it is not an address of this host';
  return new AenvError('config_invalid', `Cannot listen on ${where}: ${why} (${error.code ?? error.message}).`, {
    cause: error,
  });
}

function inUrl(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}
