import { isIP, type Socket } from 'node:net';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { ENVD_PORT } from '@aenv/contracts/guest/link.ts';
import type { Clock } from '@aenv/platform/clock/clock.ts';
import type { ProxyConfig } from '../config.ts';
import type { RouteTarget } from '../contract.ts';
import { connectTcp, startTls } from './connect-tcp.ts';
import { openTunnel } from './tunnel.ts';

export interface DialOptions {
  readonly target: RouteTarget;
  readonly port: number;
  /** for servers that choose a certificate by name */
  readonly host: string | undefined;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly config: ProxyConfig;
}

/**
 * Connects to a port in a sandbox: its outer address first, then through envd to its loopback, and both again after a
 * short while when nothing listens.
 * @throws AenvError `port_not_open`, `upstream_timeout`, `upstream_failed`; the signal's reason
 */
export async function dial(options: DialOptions): Promise<Socket> {
  const { target, port, config, clock, signal } = options;
  for (let attempt = 0; ; attempt++) {
    const socket = await tryOnce(options);
    if (socket !== undefined) return await secured(socket, options);
    const delay = config.retryDelaysMs[attempt];
    if (delay === undefined) {
      throw new AenvError('port_not_open', 'The sandbox is running but port is not open', {
        details: { sandboxId: target.sandboxId, port },
      });
    }
    await clock.sleep(delay, signal);
  }
}

/** undefined: nothing listens, which may change. */
async function tryOnce({ target, port, config, signal }: DialOptions): Promise<Socket | undefined> {
  const limits = { timeoutMs: config.connectTimeoutMs, signal };
  try {
    return await connectTcp(target.address, port, limits);
  } catch (error) {
    if (codeOf(error) !== 'ECONNREFUSED') throw unreachable(error, target, signal);
  }
  if (port === ENVD_PORT) return undefined;
  try {
    return await openTunnel(target.address, port, target.hostSecret, limits);
  } catch (error) {
    // Whatever ails envd, what is known of the port itself is that it refused.
    if (signal.aborted || error instanceof AenvError) throw error;
    return undefined;
  }
}

async function secured(socket: Socket, { target, port, host, config, signal }: DialOptions): Promise<Socket> {
  if (!target.httpsPorts.includes(port)) return socket;
  const name = host?.replace(/:[0-9]*$/, '');
  const serverName = name === undefined || name === '' || isIP(name) !== 0 || name.startsWith('[') ? undefined : name;
  try {
    return await startTls(socket, serverName, { timeoutMs: config.connectTimeoutMs, signal });
  } catch (error) {
    socket.destroy();
    if (signal.aborted || error instanceof AenvError) throw error;
    throw new AenvError(
      'upstream_failed',
      `The server on port ${port} of the sandbox does not speak TLS as configured.`,
      {
        details: { sandboxId: target.sandboxId, port },
        cause: error,
      },
    );
  }
}

function unreachable(error: unknown, target: RouteTarget, signal: AbortSignal): unknown {
  if (signal.aborted || error instanceof AenvError) return error;
  const timeout = codeOf(error) === 'ETIMEDOUT';
  return new AenvError(
    timeout ? 'upstream_timeout' : 'upstream_failed',
    timeout ? 'The sandbox accepted no connection in time.' : 'The sandbox could not be reached.',
    { details: { sandboxId: target.sandboxId }, cause: error },
  );
}

export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}
