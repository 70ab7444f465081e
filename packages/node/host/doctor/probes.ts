import type { X509Certificate } from 'node:crypto';
import type { HostCheck } from '@aenv/network/host/check.ts';
import type { PairFiles } from '../../certificates/read-pair.ts';
import type { Address } from '../daemon/port.ts';

/** What doctor learns of a host. The real ones ask the host, tests plant faults. They change nothing. */
export interface HostProbes {
  readonly uid: number;
  /** as in `process.arch` */
  readonly arch: string;
  /** code name of the Debian release; throws `host_unsupported` elsewhere */
  release(): Promise<string>;
  missingPackages(): Promise<readonly string[]>;
  network(): Promise<readonly HostCheck[]>;
  /** the range that slots would get; throws `network_exhausted`, `config_invalid` */
  range(): Promise<string>;
  qemu(): Promise<QemuFound | undefined>;
  accelerator(): Promise<AcceleratorFound>;
  /** throws `host_unsupported` that names the folder that VMs cannot pass */
  reachable(): Promise<void>;
  disk(): Promise<DiskFound>;
  /** bytes that programs can still get */
  availableMemory(): Promise<number>;
  /** permission bits, or undefined when it does not exist */
  mode(path: string): Promise<number | undefined>;
  /** throws `config_invalid` for files that cannot be used together */
  certificate(files: PairFiles): Promise<X509Certificate>;
  daemon(): Promise<DaemonFound | undefined>;
  /** throws `port_in_use`, `config_invalid` */
  portFree(address: Address): Promise<void>;
}

/** What `--fix` does; each one throws when it did not help. */
export interface HostMends {
  installPackages(names: readonly string[]): Promise<void>;
  fetchQemu(): Promise<void>;
  openTun(): Promise<void>;
  closeSecrets(): Promise<void>;
}

export interface QemuFound {
  readonly version: string;
  readonly path: string;
  readonly origin: 'host' | 'backports' | 'release' | 'configuration';
}

export interface AcceleratorFound {
  /** undefined: nobody has tried since this host booted */
  readonly accelerator: 'kvm' | 'tcg' | undefined;
  readonly reason: string;
}

export interface DiskFound {
  /** the folder that was looked at: the home folder, or what exists above it */
  readonly folder: string;
  readonly freeBytes: number;
  readonly type: string;
}

export interface DaemonFound {
  readonly url: string;
  readonly pid: number;
  readonly healthy: boolean;
}
