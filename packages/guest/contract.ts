import type { Logger } from '@aenv/platform/observability/logger.ts';

/** A file that VMs boot from, immutable, named by the digest of its inputs. */
export interface GuestFile {
  readonly path: string;
  /** sha256 over everything that the file is made of */
  readonly digest: string;
}

/** All that is needed to boot a VM besides its root file system. */
export interface GuestAssets {
  /** uncompressed ELF with a PVH note; takes QEMU's -kernel and Firecracker alike */
  readonly kernel: GuestFile & { readonly version: string };
  readonly initramfs: GuestFile;
  /** read-only EROFS drive with runtime, loader, libraries, native program and envd */
  readonly tools: GuestFile & { readonly uuid: string };
  /** the native program, static, also runs on the host (`clock tsc-khz`) */
  readonly native: GuestFile;
}

export interface BuildOptions {
  /** content-addressed cache; a file in it is complete or absent */
  readonly assetsDir: string;
  readonly log: Logger;
  readonly signal?: AbortSignal;
}
