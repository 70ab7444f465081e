import type { Hold } from './stack.ts';

/** One use of something shared. */
export interface SharedHold<T> extends Hold {
  readonly value: T;
  retain(): SharedHold<T>;
}

/** Something that is opened at the first use and closed after the last one. */
export class Shared<T> {
  readonly #open: () => Promise<T>;
  readonly #dispose: (value: T) => Promise<void>;
  readonly #forget: () => void;
  #value: Promise<T> | undefined;
  #uses = 0;

  /** @param forget called when this one is used up, or could not be opened: the next user makes a new one */
  constructor(open: () => Promise<T>, dispose: (value: T) => Promise<void>, forget: () => void) {
    this.#open = open;
    this.#dispose = dispose;
    this.#forget = forget;
  }

  async use(): Promise<SharedHold<T>> {
    this.#uses++;
    this.#value ??= this.#open();
    try {
      return this.#hold(await this.#value);
    } catch (error) {
      this.#uses--;
      this.#forget();
      throw error;
    }
  }

  #hold(value: T): SharedHold<T> {
    let open = true;
    return {
      value,
      retain: () => {
        this.#uses++;
        return this.#hold(value);
      },
      close: async () => {
        if (!open) return;
        open = false;
        if (--this.#uses > 0) return;
        this.#forget();
        await this.#dispose(value);
      },
    };
  }
}

/** Waits for a hold; one that comes after the abort is closed at once. */
export async function unlessAborted<H extends Hold>(opening: Promise<H>, signal?: AbortSignal): Promise<H> {
  if (signal === undefined) return opening;
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(signal.reason);
  signal.addEventListener('abort', onAbort);
  try {
    if (signal.aborted) reject(signal.reason);
    return await Promise.race([opening, aborted]);
  } catch (error) {
    opening.then(
      (hold) => hold.close(),
      () => {},
    );
    throw error;
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
