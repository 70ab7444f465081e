/**
 * Rounds of syncing that callers share: one that needs what is written up to now joins the running round if that covers
 * it, else the one after it, together with everyone who came meanwhile.
 */
export class SyncRounds {
  readonly #round: () => Promise<void>;
  #written = 0;
  #covered = 0;
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;

  /** @param round makes everything that is written when it is called durable */
  constructor(round: () => Promise<void>) {
    this.#round = round;
  }

  get isRunning(): boolean {
    return this.#running !== undefined;
  }

  /** Something was written that no round covers yet. */
  wrote(): void {
    this.#written++;
  }

  /** Resolves when everything that is written now is durable. */
  async sync(): Promise<void> {
    if (this.#covered === this.#written) return this.#running;
    if (this.#next !== undefined) return this.#next;
    if (this.#running === undefined) return this.#start();
    this.#next = this.#afterRunning(this.#running);
    return this.#next;
  }

  /** Waits for the rounds under way, whatever becomes of them. */
  async settle(): Promise<void> {
    while (this.#running !== undefined) {
      await (this.#next ?? this.#running).catch(() => {});
    }
  }

  async #afterRunning(running: Promise<void>): Promise<void> {
    await running.catch(() => {});
    this.#next = undefined;
    return this.#start();
  }

  #start(): Promise<void> {
    const before = this.#covered;
    this.#covered = this.#written;
    const running = this.#once(before);
    this.#running = running;
    return running;
  }

  async #once(before: number): Promise<void> {
    try {
      await this.#round();
    } catch (error) {
      // What it should have covered is still to be done.
      this.#covered = before;
      throw error;
    } finally {
      this.#running = undefined;
    }
  }
}
