import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { writeCpio } from '@aenv/guest/initramfs/cpio.ts';
import { RUNTIME } from '@aenv/guest/tools/runtime.ts';
import type { BenchHost } from '../host/bench-host.ts';

/** The server that the bare runtime runs; it tells on fd 3 that it listens. */
const SERVER = `
const server = require('node:http').createServer((request, response) => {
  response.writeHead(204);
  response.end();
});
server.listen(80, '127.0.0.1', () => require('node:fs').writeSync(3, '.'));
`;

/**
 * The initramfs of the bare guest in a folder of its own: the smallest init there can be, the product's kernel modules
 * (to reach the tools drive), and a trivial server for the product's runtime, without any of the product's options.
 */
export class BareGuest implements AsyncDisposable {
  readonly initramfs: string;
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
    this.initramfs = join(folder, 'initramfs.cpio');
  }

  static async create(host: BenchHost): Promise<BareGuest> {
    const guest = new BareGuest(await mkdtemp(join(tmpdir(), 'aenv-bench-')));
    const argv = [
      `/tools/lib/${basename(RUNTIME.loader)}`,
      '--library-path',
      '/tools/lib',
      `/tools/bin/${basename(RUNTIME.executable)}`,
      '/server.cjs',
    ];
    const archive = writeCpio([
      { kind: 'file', path: 'init', mode: 0o755, data: await readFile(host.programs.bareInit) },
      { kind: 'file', path: 'argv', mode: 0o644, data: Buffer.from(argv.map((line) => `${line}\n`).join('')) },
      { kind: 'file', path: 'server.cjs', mode: 0o644, data: Buffer.from(SERVER) },
      ...(['proc', 'sys', 'dev'] as const).map((path) => ({ kind: 'folder', path, mode: 0o755 }) as const),
      { kind: 'character-device', path: 'dev/console', mode: 0o600, major: 5, minor: 1 },
    ]);
    await writeFile(guest.initramfs, Buffer.concat([await readFile(host.modules), archive]));
    return guest;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
  }
}
