import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { LayerApplier, type LayerLimits } from '../layers/applier.ts';
import { pieces, type TestMember, tar } from './tar.ts';

/** A folder with a root for layers, and a file outside that nothing may touch. */
export class TestRoot implements AsyncDisposable {
  readonly top: string;
  readonly root: string;

  private constructor(top: string) {
    this.top = top;
    this.root = join(top, 'root');
  }

  static async make(): Promise<TestRoot> {
    const result = new TestRoot(await mkdtemp(join(tmpdir(), 'images-apply-')));
    await mkdir(result.root);
    await mkdir(join(result.top, 'scratch'));
    return result;
  }

  /** Applies layers, each a list of members, in order. */
  async apply(layers: readonly (readonly TestMember[])[], limits?: LayerLimits): Promise<void> {
    const applier = new LayerApplier({
      root: this.root,
      scratch: join(this.top, 'scratch'),
      log: silentLogger,
      ...(limits === undefined ? {} : { limits }),
    });
    for (const members of layers) await applier.apply(pieces(tar(...members)));
    await applier.finish();
  }

  path(name: string): string {
    return join(this.root, name);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.top, { recursive: true, force: true });
  }
}
