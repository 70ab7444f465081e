import { Agent, type ClientRequest, type ClientRequestArgs, type RequestOptions } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

/** Request options that reach `createConnection`. */
export interface GuestRequestOptions extends RequestOptions {
  readonly guest: {
    readonly port: number;
    readonly host: string | undefined;
    /** ends the dialling when the request is given up */
    readonly signal: AbortSignal;
  };
}

export type GuestDial = (guest: GuestRequestOptions['guest']) => Promise<Socket>;

export interface GuestAgentOptions {
  readonly dial: GuestDial;
  readonly idleMs: number;
  readonly maxIdle: number;
}

/**
 * Connections to one incarnation of a sandbox, kept for the next request to the same port for a while. There is one
 * agent for each incarnation, so no connection can serve another one.
 */
export class GuestAgent extends Agent {
  readonly #dial: GuestDial;
  readonly #maxIdle: number;

  constructor({ dial, idleMs, maxIdle }: GuestAgentOptions) {
    super({ keepAlive: maxIdle > 0, maxFreeSockets: maxIdle, scheduling: 'lifo', timeout: idleMs });
    this.#dial = dial;
    this.#maxIdle = maxIdle;
  }

  override createConnection(
    options: ClientRequestArgs,
    callback?: (error: Error | null, socket: Duplex) => void,
  ): undefined {
    const { guest } = options as ClientRequestArgs & GuestRequestOptions;
    this.#dial(guest).then(
      (socket) => callback?.(null, socket),
      (error: Error) => {
        // The agent has made an empty list for this port already, and would keep it for every port ever tried.
        const lists = this.sockets as Record<string, Socket[] | undefined>;
        if (lists[this.getName(options)]?.length === 0) delete lists[this.getName(options)];
        // With an error the agent ignores the second argument.
        (callback as ((error: Error) => void) | undefined)?.(error);
      },
    );
    return undefined;
  }

  override getName(options?: ClientRequestArgs): string {
    return String((options as GuestRequestOptions | undefined)?.guest?.port ?? '');
  }

  override keepSocketAlive(socket: Duplex): boolean {
    let idle = 0;
    for (const sockets of Object.values(this.freeSockets)) idle += sockets?.length ?? 0;
    // The base class answers whether the server's own announcement allows it, which its declaration leaves out.
    const allowed: unknown = super.keepSocketAlive(socket);
    return allowed !== false && idle < this.#maxIdle;
  }

  override reuseSocket(socket: Duplex, request: ClientRequest): void {
    super.reuseSocket(socket, request);
    (socket as Socket).setTimeout(0);
  }
}
