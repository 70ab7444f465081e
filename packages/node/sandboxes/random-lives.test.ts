import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Random, randomOf } from '@aenv/block/testing/fuzz.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Point } from './testing/fake-host.ts';
import { CREATE, type Fixture, fixture } from './testing/fixture.ts';

const SOAK = process.env.AENV_SOAK === '1';
/** Those that have found something, and some more. What comes first depends on files of the host, too. */
const SEEDS = SOAK ? Array.from({ length: 300 }, (_, at) => at) : [2, 28, 42];
/** A step that waits for ever is found by this, `ms`. */
const LIMIT_MS = 60_000;
const CLIENTS = 4;
const CALLS = 25;

/** Steps that may fail, and at which VMs may die; the others only take their time. */
const FAILING: readonly Point[] = [
  ...(['acquire', 'create', 'attach', 'boot', 'restore', 'health', 'init', 'unfreeze', 'admit'] as const),
  ...(['capture', 'captured', 'sync', 'resume'] as const),
];
const LASTING: readonly Point[] = ['stop', 'release', 'remove', 'forget'];

const turn = () => new Promise((resolve) => setImmediate(resolve));

function pick<T>(random: Random, all: readonly T[]): T {
  const one = all[Math.floor(random() * all.length)];
  if (one === undefined) throw new Error('there is nothing to pick from');
  return one;
}

/** A host whose steps take several turns, some of which fail, until the result is called. */
function makeUnreliable({ host }: Fixture, random: Random): () => void {
  let unreliable = true;
  const failures = random() < 0.5 ? 0.08 : 0;
  for (const point of [...FAILING, ...LASTING]) {
    host.hooks.set(point, async () => {
      for (let turns = Math.floor(random() * 4); turns > 0; turns--) await turn();
      if (!unreliable || LASTING.includes(point)) return;
      if (random() < 0.01 && host.vms.size > 0) pick(random, [...host.vms.values()]).die('as planned');
      if (random() < failures) throw new AenvError('io_failed', `as planned at ${point}`);
    });
  }
  return () => {
    unreliable = false;
  };
}

/** What clients may ask for a sandbox; each adds the ids of new ones. */
function calls(
  { sandboxes }: Fixture,
  random: Random,
  ids: Set<string>,
): readonly ((id: string) => Promise<unknown>)[] {
  const any = (most: number) => Math.floor(random() * most);
  return [
    (id) => sandboxes.pause(id, { memory: true }),
    (id) => sandboxes.pause(id, { memory: false }),
    (id) => sandboxes.connect(id, 30),
    (id) => sandboxes.connect(id, 30, { memory: false }),
    (id) => sandboxes.resume(id, 30),
    (id) => sandboxes.kill(id),
    (id) => sandboxes.snapshot(id),
    (id) => sandboxes.setTimeout(id, any(10)),
    async (id) => {
      const route = sandboxes.routes.lookup(id);
      if (route.kind === 'unavailable') await route.wake?.();
    },
    async (id) => {
      for (const fork of await sandboxes.fork(id, { count: 2, timeoutSeconds: 20 })) {
        if ('view' in fork) ids.add(fork.view.sandboxId);
        else onlyForReasons(fork.error);
      }
    },
    async () => {
      const [onTimeout, autoResume] = [pick(random, ['pause', 'kill'] as const), random() < 0.5];
      ids.add((await sandboxes.create({ ...CREATE, timeoutSeconds: 5 + any(30), onTimeout, autoResume })).sandboxId);
    },
  ];
}

/** Whatever goes wrong on the host, a client is told a reason, and none is a fault of the lifecycle. */
function onlyForReasons(error: unknown): void {
  const isReason = error instanceof AenvError && error.code !== 'internal';
  assert.ok(isReason, error instanceof Error ? error.stack : String(error));
}

async function client(f: Fixture, random: Random, ids: Set<string>): Promise<void> {
  const all = calls(f, random, ids);
  for (let count = 0; count < CALLS; count++) {
    const call = ids.size < 2 ? all.at(-1) : pick(random, all);
    await call?.(ids.size === 0 ? '' : pick(random, [...ids])).catch(onlyForReasons);
  }
}

/** Row, state and traffic of each sandbox say the same, and a paused one has what it needs to go on. */
function checkAll({ sandboxes, ledger, host }: Fixture): void {
  for (const live of sandboxes.routes.all()) {
    const row = ledger.sandboxes.get(live.id);
    assert.equal(row?.state, live.lifecycle.state, live.id);
    assert.ok(row.state === 'running' || row.state === 'paused', `${live.id} is ${row.state}`);
    if (row.state === 'running') assert.equal(sandboxes.routes.lookup(live.id).kind, 'running', live.id);
    else assert.ok(host.checkpointsOnDisk.has(row.checkpoint?.id ?? ''), live.id);
  }
}

for (const seed of SEEDS) {
  test(`clients at odds, a host that fails and time that passes: every call is answered, nothing leaks (seed ${seed})`, {
    timeout: LIMIT_MS,
  }, async () => {
    const random = randomOf(seed);
    const shutdown = { action: pick(random, ['pause', 'kill'] as const), timeoutMs: 5_000 };
    await using f = await fixture({ paused: { max: 4, ttlSeconds: 50 }, shutdown });
    const settle = makeUnreliable(f, random);
    const ids = new Set<string>();
    let busy = true;
    const time = async () => {
      for (; busy; await turn()) await f.clock.advance(1_000);
    };
    const passing = time();
    await Promise.all(Array.from({ length: CLIENTS }, () => client(f, random, ids))).finally(() => {
      busy = false;
      settle();
    });
    await passing;
    for (const live of f.sandboxes.routes.all()) await live.exclusive(async () => {});
    await Promise.all(
      f.sandboxes.routes
        .all()
        .filter(isEnding)
        .map((live) => live.gone),
    );
    checkAll(f);
    await f.sandboxes.close();
    const next = f.restart();
    next.takeUpPaused();
    for (const { id } of next.routes.all()) await next.kill(id);
    await next.close();
    for (const { templateId } of f.snapshots.list({ limit: 1000 }).items) await f.snapshots.remove(templateId);
    assert.deepEqual([f.host.inventory(), f.host.opened.size, f.ledger.sandboxes.live()], [[], 0, []]);
  });
}

const isEnding = ({ lifecycle: { state } }: { lifecycle: { state: string } }): boolean =>
  state !== 'running' && state !== 'paused';
