import { inParallel } from '@aenv/node/snapshots/repository/in-parallel.ts';
import type { TestDaemon } from '../../tests/harness/daemon.ts';
import type { Bench } from '../measurement.ts';
import { pssOf } from '../memory/pss.ts';
import { vmProcess } from '../proxy/slot-address.ts';
import { runCommand } from '../sandboxes/envd.ts';
import { type BenchSandbox, logLine } from '../sandboxes/sandbox.ts';

export interface Forked {
  /** request to answer, `ms`: the last child runs by then */
  readonly ms: number;
  /** of the capture, by the daemon's log */
  readonly phases: Readonly<Record<string, number>>;
  /** MiB of each child's QEMU */
  readonly pss: readonly number[];
}

type Child = Pick<BenchSandbox, 'id' | 'accessToken'>;

/**
 * Forks a sandbox, has all children answer, and deletes them.
 * @param before forks of it before
 * @throws Error when one is missing, or is not a sandbox of its own that goes on from the source
 */
export async function forkOnce(
  bench: Bench,
  daemon: TestDaemon,
  source: BenchSandbox,
  count: number,
  before: number,
): Promise<Forked> {
  const begin = performance.now();
  const answer = await daemon.api('POST', `/sandboxes/${source.id}/fork`, { count, timeout: 3600 });
  const text = await answer.text();
  const ms = performance.now() - begin;
  if (answer.status !== 201) throw new Error(`fork was answered with ${answer.status}: ${text}`);
  const children = childrenOf(text);
  try {
    if (children.length !== count) throw new Error(`${children.length} of ${count} children came: ${text}`);
    await check(bench, daemon, source, children);
    const pids = await Promise.all(children.map(({ id }) => vmProcess(id)));
    const pss = await Promise.all(pids.map((pid) => pssOf(Number(pid))));
    const { ms: phases } = await logLine(daemon, 'sandbox forked', source.id, before);
    return { ms, phases, pss };
  } finally {
    await inParallel(children, 4, async ({ id }) => {
      await daemon.api('DELETE', `/sandboxes/${id}`);
    });
  }
}

function childrenOf(text: string): Child[] {
  const entries = JSON.parse(text) as {
    readonly sandbox?: { readonly sandboxID: string; readonly envdAccessToken: string };
  }[];
  return entries.flatMap(({ sandbox }) =>
    sandbox === undefined ? [] : [{ id: sandbox.sandboxID, accessToken: sandbox.envdAccessToken }],
  );
}

/** Each answers by its own name on the kernel of the source, and nobody has the token of another one. */
async function check(
  bench: Bench,
  daemon: TestDaemon,
  source: BenchSandbox,
  children: readonly Child[],
): Promise<void> {
  const look = ['/bin/sh', ['-c', 'hostname; cat /proc/sys/kernel/random/boot_id']] as const;
  const [, bootId] = (await runCommand(daemon, source, ...look)).stdout.split('\n');
  await inParallel(children, 2, async (child) => {
    bench.signal.throwIfAborted();
    const [name, boot] = (await runCommand(daemon, child, ...look)).stdout.split('\n');
    if (name !== child.id) throw new Error(`child ${child.id} is called ${name}`);
    if (boot !== bootId) throw new Error(`child ${child.id} does not run the kernel of its source`);
  });
  const all = [source, ...children];
  for (const key of ['id', 'accessToken'] as const) {
    if (new Set(all.map((one) => one[key])).size !== all.length) throw new Error(`two children have one ${key}`);
  }
}
