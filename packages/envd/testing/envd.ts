import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type GuestDrive, HOST_SECRET_HEADER, type InitRequest } from '@aenv/contracts/envd/host-api.ts';
import type { GuestSystem, HostTime } from '../guest-state/guest-system.ts';
import type { Identity } from '../guest-state/identity.ts';
import { DEFAULT_PROCESS_TABLE } from '../process/process-table.ts';
import { type Envd, startEnvd } from '../server/envd.ts';
import type { EnvdOptions } from '../server/options.ts';
import { nativeForTests } from './native.ts';

export const TEST_SECRET = 'a'.repeat(64);

/** What /init did to the guest, instead of doing it to this host. */
export interface RecordedSystem extends GuestSystem {
  readonly clocks: HostTime[];
  readonly seeds: Uint8Array[];
  readonly identities: Identity[];
  readonly drives: GuestDrive[];
  /** what else it was told, in words */
  readonly told: string[];
}

export function recordedSystem(): RecordedSystem {
  const clocks: HostTime[] = [];
  const seeds: Uint8Array[] = [];
  const identities: Identity[] = [];
  const drives: GuestDrive[] = [];
  const told: string[] = [];
  return {
    told,
    clocks,
    seeds,
    identities,
    drives,
    mountDrives: async (some) => void drives.push(...some),
    renew: async ({ time, seed }) => {
      if (time !== undefined) clocks.push(time);
      if (seed !== undefined) seeds.push(seed);
      return 0;
    },
    freeze: async () => told.push('freeze') > 0,
    release: async ({ keepPort, thaw }) => {
      if (keepPort !== undefined) told.push(`disconnect all but ${keepPort}`);
      if (thaw) told.push('thaw');
      return true;
    },
    sync: async () => void told.push('sync'),
    setIdentity: (identity) => void identities.push(identity),
    bootId: () => '00000000-0000-4000-8000-000000000000',
    warmUp: () => {},
    close: async () => {},
  };
}

export interface TestEnvd extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  /** a folder of its own for the test's files, mode 0755 */
  readonly dir: string;
  readonly options: EnvdOptions;
  readonly system: RecordedSystem;
  readonly envd: Envd;
  init(body?: InitRequest, secret?: string): Promise<Response>;
}

/** A real envd on loopback, with its state in a folder that is removed at the end. */
export async function testEnvd(overrides: Partial<EnvdOptions> = {}): Promise<TestEnvd> {
  const root = mkdtempSync(join(tmpdir(), 'aenv-envd-test-'));
  const dir = mkdtempSync(join(tmpdir(), 'aenv-envd-files-'));
  chmodSync(dir, 0o755);
  const system = recordedSystem();
  const options: EnvdOptions = {
    address: '127.0.0.1',
    port: 0,
    native: nativeForTests(),
    stateFile: join(root, 'state/envd.json'),
    etc: '/etc',
    system,
    processes: DEFAULT_PROCESS_TABLE,
    log: () => {},
    ...overrides,
  };
  const envd = await startEnvd(options);
  const url = `http://127.0.0.1:${envd.port}`;
  return {
    url,
    port: envd.port,
    dir,
    options,
    system,
    envd,
    init: (body = {}, secret = TEST_SECRET) =>
      fetch(`${url}/init`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', [HOST_SECRET_HEADER]: secret },
        body: JSON.stringify(body),
      }),
    async [Symbol.asyncDispose]() {
      await envd.close();
      rmSync(root, { recursive: true, force: true });
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
