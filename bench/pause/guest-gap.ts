import { readFile } from 'node:fs/promises';
import { Agent, get } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { TestDaemon } from '../../tests/harness/daemon.ts';
import type { Bench, Row } from '../measurement.ts';
import { slotAddress } from '../proxy/slot-address.ts';
import { ratioRow } from '../report/rows.ts';
import { runCommand, uploadProgram } from '../sandboxes/envd.ts';
import { createSandbox } from '../sandboxes/sandbox.ts';
import { Snapshots } from './snapshots.ts';

const ROUNDS = 3;
const PORT = 8080;
const PROGRAM = '/tmp/http-server';
const EVERY_MS = 2;
/** Of asking before and after the snapshot. */
const AROUND_MS = 300;

/** Whether the time that the daemon tells is the one that a client of a server in the guest has to wait. */
export async function gapRow(bench: Bench, daemon: TestDaemon): Promise<Row> {
  await using sandbox = await createSandbox(daemon);
  await uploadProgram(daemon, sandbox, PROGRAM, await readFile(bench.host.programs.httpServer));
  await runCommand(daemon, sandbox, '/bin/sh', ['-c', `${PROGRAM} ${PORT} && echo started`]);
  const address = await slotAddress(sandbox.id);
  const snapshots = new Snapshots(daemon, sandbox);
  const seen: number[] = [];
  const told: number[] = [];
  const rounds = bench.rounds(ROUNDS);
  for (let round = 0; round <= rounds; round++) {
    const over = new AbortController();
    const gap = longestGap(address, AbortSignal.any([bench.signal, over.signal]));
    let stillMs: number;
    try {
      await delay(AROUND_MS);
      ({ stillMs } = await snapshots.take());
      await delay(AROUND_MS);
    } finally {
      over.abort();
    }
    const gapMs = await gap;
    bench.say(`a client of the guest waits ${gapMs.toFixed(0)} ms, the daemon tells ${stillMs.toFixed(0)} ms`);
    if (round === 0) continue;
    seen.push(gapMs);
    told.push(stillMs);
  }
  return ratioRow('pause/longest wait of a client of the guest, over the time told', { seen, told }, undefined, {
    note: 'series in ms; a server in the guest is asked every 2 ms, which keeps it busy',
  });
}

/** @returns `ms` between two answers, at most */
async function longestGap(address: string, signal: AbortSignal): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  let last = performance.now();
  let longest = 0;
  try {
    while (!signal.aborted) {
      await ask(agent, address);
      const now = performance.now();
      longest = Math.max(longest, now - last);
      last = now;
      await delay(EVERY_MS);
    }
    return longest;
  } finally {
    agent.destroy();
  }
}

function ask(agent: Agent, address: string): Promise<void> {
  return new Promise((resolve, reject) => {
    get({ agent, host: address, port: PORT, path: '/', timeout: 30_000 }, (answer) => {
      answer.resume();
      answer.once('end', resolve);
      answer.once('error', reject);
    })
      .once('error', reject)
      .once('timeout', () => reject(new Error('the server in the guest does not answer')));
  });
}
