import type { Volume, WriteOp } from '../../volume/contract.ts';
import type { Request } from '../protocol/request.ts';

/** What became of a group; without an error all of it is done. */
export interface AppliedWrites {
  readonly writes: readonly { readonly request: Request; readonly cost: number }[];
  readonly error?: unknown;
}

/** Writes that came together, which the volume then appends with few system calls. */
export class WriteGroup {
  readonly #volume: Volume;
  #requests: { readonly request: Request; readonly cost: number }[] = [];
  #operations: WriteOp[] = [];

  constructor(volume: Volume) {
    this.#volume = volume;
  }

  get empty(): boolean {
    return this.#requests.length === 0;
  }

  /** `data` must stay as it is until `take`. */
  add(request: Request, data: Buffer): void {
    this.#requests.push({ request, cost: data.length });
    this.#operations.push({ data, offset: request.offset });
  }

  /** Makes all writes, in their order, and starts anew. */
  take(): AppliedWrites {
    const writes = this.#requests;
    const operations = this.#operations;
    this.#requests = [];
    this.#operations = [];
    try {
      this.#volume.writeMany(operations);
      return { writes };
    } catch (error) {
      return { writes, error };
    }
  }
}
