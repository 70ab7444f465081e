import { createServer } from 'node:net';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';

export interface Address {
  readonly host: string;
  readonly port: number;
}

export function formatAddress({ host, port }: Address): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/**
 * Listens on the address for a moment, which is the only sure way to learn whether one can.
 * @throws AenvError `port_in_use`, `config_invalid` for an address that this host does not have
 */
export async function assertPortFree(address: Address): Promise<void> {
  if (address.port === 0) return;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const server = createServer();
  server.once('error', reject);
  server.listen({ ...address, exclusive: true }, resolve);
  try {
    await promise;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    const where = formatAddress(address);
    if (code === 'EADDRINUSE')
      throw new AenvError('port_in_use', `another process listens on ${where}`, { cause: error });
    throw new AenvError('config_invalid', `cannot listen on ${where}: ${String(error)}`, {
      remediation: 'Choose an address of this host with `--listen`, AENV_LISTEN or the key `listen`.',
      cause: error,
    });
  } finally {
    await new Promise<void>((done) => server.close(() => done()));
  }
}
