import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { chmod, mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type CaptureTarget,
  type MemorySink,
  type MicroVm,
  PAGE_SIZE,
  type VmImage,
  type VmShape,
} from './micro-vm.ts';

type Change = { readonly offset: number; readonly bytes: Buffer } | { readonly offset: number; readonly zeros: number };

/** A capture in a folder of its own: its pages both as a base file and as a list of changes. */
export class CapturedFiles implements AsyncDisposable {
  readonly image: VmImage;
  readonly #folder: string;
  readonly #changes: readonly Change[];
  readonly #digest: string;

  private constructor(folder: string, image: VmImage, changes: readonly Change[], digest: string) {
    this.#folder = folder;
    this.image = image;
    this.#changes = changes;
    this.#digest = digest;
  }

  /** Captures a paused VM. */
  static async of(vm: MicroVm, { memoryMb }: VmShape): Promise<CapturedFiles> {
    const folder = await mkdtemp(join(tmpdir(), 'capture-'));
    // The VM's user reads the base.
    await chmod(folder, 0o711);
    const changes: Change[] = [];
    const image = { deviceState: join(folder, 'devices'), memoryBase: join(folder, 'memory') };
    await vm.capture({
      deviceState: image.deviceState,
      memory: {
        data: (offset, bytes) => void changes.push({ offset, bytes: Buffer.from(bytes) }),
        zero: (offset, length) => void changes.push({ offset, zeros: length }),
      },
    });
    await writeBase(image.memoryBase, memoryMb, changes);
    return new CapturedFiles(folder, image, changes, await digestOf(image.memoryBase));
  }

  /** Where a capture that fails would go. */
  static async target(vm: MicroVm): Promise<CaptureTarget> {
    return {
      deviceState: join(tmpdir(), `never-${vm.record.incarnation}`),
      memory: { data: () => {}, zero: () => {} },
    };
  }

  /** Captures a paused VM to where there is no room for its memory. @throws what the VM says to that */
  static async withoutRoom(vm: MicroVm): Promise<void> {
    const folder = await mkdtemp(join(tmpdir(), 'capture-'));
    const full = () => {
      throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
    };
    try {
      await vm.capture({ deviceState: join(folder, 'devices'), memory: { data: full, zero: full } });
    } finally {
      await rm(folder, { recursive: true });
    }
  }

  /** The changes as a delta. */
  readonly give = async (sink: MemorySink): Promise<void> => {
    for (const change of this.#changes) {
      if ('bytes' in change) await sink.data(change.offset, change.bytes);
      else await sink.zero(change.offset, change.zeros);
    }
  };

  get pages(): number {
    const bytes = this.#changes.map((change) => ('bytes' in change ? change.bytes.length : change.zeros));
    return bytes.reduce((sum, size) => sum + size, 0) / PAGE_SIZE;
  }

  /** Whether the base file is as it was written. */
  async unchanged(): Promise<boolean> {
    return (await digestOf(this.image.memoryBase)) === this.#digest;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
  }
}

async function writeBase(path: string, memoryMb: number, changes: readonly Change[]): Promise<void> {
  await using file = await open(path, 'wx', 0o444);
  await file.truncate(memoryMb * 1024 * 1024);
  for (const change of changes) {
    if ('bytes' in change) await file.write(change.bytes, 0, change.bytes.length, change.offset);
  }
}

async function digestOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path)) hash.update(chunk);
  return hash.digest('hex');
}
