import type { FaultFront } from '@aenv/images/testing/fault-front.ts';
import { push } from '@aenv/images/testing/push.ts';
import { RegistryFixture } from '@aenv/images/testing/registry-fixture.ts';
import { tar } from '@aenv/images/testing/tar.ts';
import type { TestDaemon } from './daemon.ts';
import { until } from './until.ts';

const BUILD_MS = 60_000;

export interface BuildIds {
  readonly templateID: string;
  readonly buildID: string;
}

/** A registry with an image of one file for each name, and builds of templates from them that can be held in their middle. */
export class HeldBuilds implements AsyncDisposable {
  readonly #registry: RegistryFixture;
  readonly #front: FaultFront;
  #layer = /^$/;
  #held = Promise.withResolvers<void>();

  private constructor(registry: RegistryFixture, front: FaultFront) {
    this.#registry = registry;
    this.#front = front;
    front.rule = async ({ url }) => {
      if (this.#layer.test(url.pathname)) await this.#held.promise;
    };
  }

  static async open(names: readonly string[]): Promise<HeldBuilds> {
    const registry = await RegistryFixture.start();
    const builds = new HeldBuilds(registry, await registry.front());
    try {
      for (const name of names) {
        const image = await registry.layout.image([tar({ name: 'only', data: name })]);
        await push({ base: registry.base, repository: name }, registry.layout, image, '1');
      }
    } catch (error) {
      await registry.close();
      throw error;
    }
    return builds;
  }

  /** What daemons need to pull from it. */
  get env(): Readonly<Record<string, string>> {
    return { AENV_REGISTRY_INSECURE: this.#front.host };
  }

  /** Starts the build of a template that is named as its image. */
  async start(daemon: TestDaemon, name: string): Promise<BuildIds> {
    const ordered = await daemon.api('POST', '/v3/templates', { name, memoryMB: 256, diskSizeMB: 64 });
    const { templateID, buildID } = (await ordered.json()) as BuildIds;
    const body = { fromImage: `${this.#front.host}/${name}:1` };
    const started = await daemon.api('POST', `/v2/templates/${templateID}/builds/${buildID}`, body);
    if (!started.ok) throw new Error(await started.text());
    return { templateID, buildID };
  }

  /** Starts a build that waits for a blob of its image until `release`. */
  async startHeld(daemon: TestDaemon, name: string): Promise<BuildIds> {
    this.#layer = new RegExp(`/${name}/blobs/`);
    const ids = await this.start(daemon, name);
    const isAsked = () => this.#front.matching(this.#layer).length > 0;
    await until(isAsked, { timeoutMs: BUILD_MS, what: `a blob of ${name} is asked for` });
    return ids;
  }

  release(): void {
    this.#layer = /^$/;
    this.#held.resolve();
    this.#held = Promise.withResolvers();
  }

  /** Waits until a build is over. */
  async outcome(daemon: TestDaemon, { templateID, buildID }: BuildIds) {
    let state = { status: '', reason: { message: '' } };
    const isOver = async () => {
      const answer = await daemon.api('GET', `/templates/${templateID}/builds/${buildID}/status`);
      state = { ...state, ...((await answer.json()) as Partial<typeof state>) };
      return state.status === 'ready' || state.status === 'error';
    };
    await until(isOver, { timeoutMs: BUILD_MS, what: `build ${buildID} is over` });
    return { status: state.status, reason: state.reason.message };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.release();
    await this.#registry.close();
  }
}
