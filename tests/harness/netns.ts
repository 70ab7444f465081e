import { run } from '@aenv/platform/process/run.ts';

/**
 * A network of the test's own that plays the outside world: a namespace with one address, joined to the host by a veth.
 * Everything in it is removed on disposal.
 */
export class OutsideWorld implements AsyncDisposable {
  readonly namespace: string;
  readonly address: string;

  private constructor(namespace: string, address: string) {
    this.namespace = namespace;
    this.address = address;
  }

  /** @param tag at most 6 letters, to tell tests apart */
  static async create(tag: string): Promise<OutsideWorld> {
    const world = new OutsideWorld(`aenvt-${tag}`, '198.51.100.2');
    await world[Symbol.asyncDispose]();
    try {
      await run(['ip', 'netns', 'add', world.namespace]);
      const host = `aenvt${tag}`;
      await run(['ip', 'link', 'add', host, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', world.namespace]);
      await run(['ip', 'addr', 'add', '198.51.100.1/24', 'dev', host]);
      await run(['ip', 'link', 'set', host, 'up']);
      await run(['ip', '-n', world.namespace, 'addr', 'add', '198.51.100.2/24', 'dev', 'eth0']);
      await run(['ip', '-n', world.namespace, 'link', 'set', 'eth0', 'up']);
      await run(['ip', '-n', world.namespace, 'link', 'set', 'lo', 'up']);
      return world;
    } catch (error) {
      await world[Symbol.asyncDispose]();
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Deleting the namespace takes both ends of the veth along.
    await run(['ip', 'netns', 'del', this.namespace], { okCodes: [0, 1] });
  }
}
