/** Where the bytes of a blob come from when they are not in the cache. */
export interface RangeOrigin {
  /** for messages: the host */
  readonly name: string;
  /**
   * Fills `target` from `offset`, in one attempt.
   * @param onProgress called with the bytes filled so far, from the start of `target`
   * @throws AenvError; of code `registry_unavailable` or `registry_rate_limited` when a later attempt may work
   */
  read(target: Uint8Array, offset: number, signal: AbortSignal, onProgress: (filled: number) => void): Promise<void>;
}

export type Priority = 'foreground' | 'background';
