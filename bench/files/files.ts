import { randomBytes } from 'node:crypto';
import type { TestDaemon } from '../../tests/harness/daemon.ts';
import type { Measurement } from '../measurement.ts';
import { slotAddress } from '../proxy/slot-address.ts';
import { ratioRow } from '../report/rows.ts';
import { interleave } from '../sampling/interleave.ts';
import { openDaemon } from '../sandboxes/daemon.ts';
import { runCommand, uploadProgram } from '../sandboxes/envd.ts';
import { type BenchSandbox, createSandbox } from '../sandboxes/sandbox.ts';
import { COPY_PROGRAM, giveFile, takeFile } from './plain-copy.ts';

const ROUNDS = 8;
const MIB = 1024 * 1024;
const SIZE = 64 * MIB;
const PROGRAM = '/tmp/plain-copy.py';
const FILE = '/tmp/uploaded';

/** Files into a sandbox and out of it, as clients move them, over a plain copy through the same slot. */
export const files: Measurement = {
  name: 'files',
  about: 'time to move 64 MiB into a sandbox and out of it, over a plain copy on a socket of its own',
  limitMs: 10 * 60_000,
  async run(bench) {
    await using daemon = await openDaemon();
    await using sandbox = await createSandbox(daemon);
    await uploadProgram(daemon, sandbox, PROGRAM, Buffer.from(COPY_PROGRAM));
    await runCommand(daemon, sandbox, '/bin/sh', ['-c', `python3 ${PROGRAM} && sleep 2 && echo started`]);
    const address = await slotAddress(sandbox.id);
    const data = randomBytes(SIZE);
    const rounds = bench.rounds(ROUNDS);
    const say = (through: number, straight: number) =>
      `${mibPerSecond(through)} MiB/s, plain ${mibPerSecond(straight)} MiB/s`;
    const up = await interleave(
      bench,
      rounds,
      () => upload(daemon, sandbox, data),
      () => giveFile(address, data),
      say,
    );
    const down = await interleave(
      bench,
      rounds,
      () => download(daemon, sandbox),
      () => takeFile(address, SIZE),
      say,
    );
    const note = 'series in ms for 64 MiB; the guest writes to and reads from its disk either way';
    return [
      ratioRow('files/time to upload, over a plain copy', { upload: up.a, plain: up.b }, undefined, { note }),
      ratioRow('files/time to download, over a plain copy', { download: down.a, plain: down.b }, undefined, { note }),
    ];
  },
};

const mibPerSecond = (ms: number) => (SIZE / MIB / (ms / 1000)).toFixed(0);

async function upload(daemon: TestDaemon, sandbox: BenchSandbox, data: Uint8Array<ArrayBuffer>): Promise<number> {
  const begin = performance.now();
  const headers = { ...access(sandbox), 'content-type': 'application/octet-stream' };
  const answer = await fetch(urlOf(daemon), { method: 'POST', headers, body: data });
  await answer.text();
  if (answer.status !== 200) throw new Error(`the upload was answered with ${answer.status}`);
  return performance.now() - begin;
}

async function download(daemon: TestDaemon, sandbox: BenchSandbox): Promise<number> {
  const begin = performance.now();
  const answer = await fetch(urlOf(daemon), { headers: { ...access(sandbox), 'accept-encoding': 'identity' } });
  let received = 0;
  for await (const chunk of answer.body ?? []) received += chunk.length;
  if (answer.status !== 200 || received !== SIZE) throw new Error(`${received} bytes came with ${answer.status}`);
  return performance.now() - begin;
}

const urlOf = (daemon: TestDaemon) => `${daemon.url}/files?${new URLSearchParams({ path: FILE, username: 'root' })}`;

function access(sandbox: BenchSandbox): Record<string, string> {
  return {
    'e2b-sandbox-id': sandbox.id,
    'e2b-sandbox-port': '49983',
    'x-access-token': sandbox.accessToken,
    authorization: `Basic ${Buffer.from('root:').toString('base64')}`,
  };
}
