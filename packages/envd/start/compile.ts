/**
 * Makes the code that `start.ts` hands to V8: runs the bundle as far as every boot of a guest runs it, so that functions
 * which are compiled when they are first called are in it, and others are not, since all of it is read at every start.
 *
 * Run by the runtime of the guests, on the host, with `--hash-seed=1`, so that the same bundle gives the same bytes.
 * Arguments: the bundle, and the file that is written.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { HOST_SECRET_HEADER } from '@aenv/contracts/envd/host-api.ts';
import type { GuestSystem } from '../guest-state/guest-system.ts';
import { DEFAULT_PROCESS_TABLE } from '../process/process-table.ts';
import { loadProgram } from './program.ts';

const SECRET = 'a'.repeat(64);

/** A guest where nothing is changed: this is the host. */
const untouched: GuestSystem = {
  renew: async () => 0,
  freeze: async () => true,
  release: async () => true,
  setIdentity: () => {},
  mountDrives: async () => {},
  sync: async () => {},
  bootId: () => '',
  warmUp: () => {},
  close: async () => {},
};

const [bundle = '', target = ''] = process.argv.slice(2);
const folder = await mkdtemp(join(tmpdir(), 'aenv-envd-'));
try {
  const program = loadProgram(bundle);
  const { startEnvd } = program.run() as unknown as typeof import('../main.ts');
  const envd = await startEnvd({
    address: '127.0.0.1',
    port: 0,
    native: '/nonexistent',
    stateFile: join(folder, 'envd.json'),
    etc: '/etc',
    system: untouched,
    processes: DEFAULT_PROCESS_TABLE,
    log: () => {},
  });
  await rehearse(envd.port);
  // Flags are part of what the engine knows its code by; this one has done its work, and guests run without it.
  setFlagsFromString('--hash-seed=0');
  await writeFile(target, program.script.createCachedData());
  await envd.close();
} finally {
  await rm(folder, { recursive: true, force: true });
}

async function rehearse(port: number): Promise<void> {
  const init = {
    ...{ accessToken: 'token', timestamp: new Date(0).toISOString(), seed: 'AAAA', envVars: {} },
    ...{ defaultUser: 'root', sandboxId: 'sandbox', templateId: 'template' },
  };
  const json = { 'content-type': 'application/json' };
  await ask(port, 204, 'GET', '/health', {});
  await ask(port, 204, 'POST', '/init', { ...json, [HOST_SECRET_HEADER]: SECRET }, init);
}

/** @throws Error when it is answered in another way */
function ask(
  port: number,
  status: number,
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  body?: object,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const call = request({ host: '127.0.0.1', port, method, path, headers, agent: false }, (response) => {
      response.resume();
      if (response.statusCode === status) response.once('end', resolve);
      else reject(new Error(`${method} ${path} was answered with ${response.statusCode}`));
    });
    call.once('error', reject);
    call.end(body === undefined ? undefined : JSON.stringify(body));
  });
}
