import { Agent, type IncomingMessage, request } from 'node:http';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { z } from 'zod';
import { decodeFrames, encodeFrame } from './connect-frames.ts';

/** A command for `bash -l -c` in a guest. */
export interface GuestCommand {
  readonly cmd: string;
  readonly user: string;
  readonly cwd: string;
  /** clients' token of envd */
  readonly accessToken: string | undefined;
}

export interface EnvdPlace {
  readonly host: string;
  readonly port: number;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface GuestExit {
  /** the exit code; undefined when it was ended by a signal */
  readonly code: number | undefined;
  /** `exit status 1`, `signal: killed` */
  readonly status: string;
  /** the end of what it printed, both streams */
  readonly output: string;
}

const START_PATH = '/process.Process/Start';
/** Of the output the last characters are kept. */
const MAX_OUTPUT = 4_096;

const Event = z.object({
  event: z
    .object({
      start: z.object({ pid: z.number() }).optional(),
      data: z.object({ stdout: z.string().optional(), stderr: z.string().optional() }).optional(),
      end: z
        .object({ exitCode: z.number().default(0), exited: z.boolean().default(false), status: z.string().default('') })
        .optional(),
    })
    .default({}),
});
const End = z.object({ error: z.object({ code: z.string(), message: z.string().default('') }).optional() });

/**
 * A process of a guest, started by envd as for any client. It goes on when the host stops listening to it.
 */
export class GuestProcess {
  /** resolves when it runs; rejects as `exited` does */
  readonly started: Promise<void>;
  /** rejects when envd refuses the command or its stream breaks */
  readonly exited: Promise<GuestExit>;
  readonly #detach: () => void;

  private constructor(started: Promise<void>, exited: Promise<GuestExit>, detach: () => void) {
    this.started = started;
    this.exited = exited;
    this.#detach = detach;
  }

  /**
   * Asks for the process and returns at once.
   * @param address of envd, or of the proxy with the headers that lead to it
   */
  static start(address: EnvdPlace, command: GuestCommand): GuestProcess {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    // A socket of its own: the next sandbox in the slot has the same address.
    const agent = new Agent({ keepAlive: false, maxSockets: 1 });
    const { cmd, user, cwd, accessToken } = command;
    const call = request({
      ...{ agent, host: address.host, port: address.port, method: 'POST', path: START_PATH },
      headers: {
        ...address.headers,
        'content-type': 'application/connect+json',
        'connect-protocol-version': '1',
        authorization: `Basic ${Buffer.from(`${user}:`).toString('base64')}`,
        ...(accessToken === undefined ? {} : { 'x-access-token': accessToken }),
      },
    });
    call.on('error', reject);
    call.on('response', resolve);
    call.end(encodeFrame({ process: { cmd: '/bin/bash', args: ['-l', '-c', cmd], cwd }, stdin: false }));
    const started = Promise.withResolvers<void>();
    const exited = promise.then((response) => follow(response, started.resolve)).finally(() => agent.destroy());
    exited.catch(started.reject);
    started.promise.catch(() => {});
    return new GuestProcess(started.promise, exited, () => call.destroy());
  }

  /** Stops listening; the process goes on. */
  detach(): void {
    this.#detach();
  }
}

async function follow(response: IncomingMessage, onStart: () => void): Promise<GuestExit> {
  if (response.statusCode !== 200) {
    response.resume();
    throw new AenvError('start_command_failed', `envd answered ${response.statusCode} to the command`);
  }
  let output = '';
  let exit: Omit<GuestExit, 'output'> | undefined;
  for await (const { last, message } of decodeFrames(response)) {
    if (last) {
      const { error } = End.parse(message);
      if (error !== undefined) throw new AenvError('start_command_failed', `${error.code}: ${error.message}`);
      break;
    }
    const { start, data, end } = Event.parse(message).event;
    if (start !== undefined) onStart();
    const text = data?.stdout ?? data?.stderr;
    if (text !== undefined) output = (output + Buffer.from(text, 'base64').toString()).slice(-MAX_OUTPUT);
    if (end !== undefined) exit = { code: end.exited ? end.exitCode : undefined, status: end.status };
  }
  if (exit === undefined) throw new AenvError('start_command_failed', 'envd did not tell how the command ended');
  return { ...exit, output: output.trim() };
}
