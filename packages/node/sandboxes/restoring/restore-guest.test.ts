import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { Stopwatch } from '../launch/phases.ts';
import { Observatory } from '../observe/observatory.ts';
import { CREATE, fixture } from '../testing/fixture.ts';
import { ManualClock } from '../testing/manual-clock.ts';
import { type GuestRestore, restoreGuest } from './restore-guest.ts';

type Envd = Parameters<typeof restoreGuest>[0];

const LIMITS = { guestMs: 60, hooksMs: 1_000 };
const HOOK = { name: '10-x', ok: true, status: 'exit status 0', ms: 3, output: '' };

function restore(envd: Partial<Envd>, signal = new AbortController().signal) {
  const stopwatch = new Stopwatch();
  const request: GuestRestore = {
    ...{ event: 'fork', init: { sandboxId: 'i1' }, oldSecret: 'old', hostSecret: 'new', stopwatch, signal },
  };
  const whole: Envd = {
    init: async () => ({ envdVersion: '0.6.13', steps: { kernel: 2 }, hooks: 0 }),
    unfreeze: async () => assert.fail('its programs go on'),
    runHooks: async () => assert.fail('there are none'),
    ...envd,
  };
  return { stopwatch, done: restoreGuest(whole, request, LIMITS) };
}

const never = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener('abort', () => reject(signal.reason));
  });
const isCode = (code: string) => (error: unknown) => error instanceof AenvError && error.code === code;

test('the phases come in their order, with their names and times, and hooks last, by the new secret', async () => {
  const calls: unknown[] = [];
  const { stopwatch, done } = restore({
    init: async (request, secrets) => {
      calls.push(['init', request, secrets]);
      return { envdVersion: '0.6.13', steps: { kernel: 2, release: 1 }, hooks: 1 };
    },
    runHooks: async (secret, request) => {
      calls.push(['hooks', secret, request]);
      return [HOOK];
    },
  });
  assert.deepEqual((await done).hooks, [HOOK]);
  assert.deepEqual(calls, [
    ['init', { sandboxId: 'i1', event: 'fork', hostSecret: 'new', letGo: true }, ['old', 'new']],
    ['hooks', 'new', { event: 'fork', timeoutMs: 1_000 }],
  ]);
  assert.deepEqual(Object.keys(stopwatch.read()), ['settle', 'settle.kernel', 'settle.release', 'hooks', 'total']);
});

test('an envd of before its first call let programs go on is told so by a second one, with the new secret', async () => {
  const calls: unknown[] = [];
  const { stopwatch, done } = restore({
    init: async () => ({ envdVersion: '0.6.13', steps: {} }),
    unfreeze: async (secret, { event }) => calls.push([secret, event]),
    runHooks: async () => [HOOK],
  });
  assert.deepEqual((await done).hooks, [HOOK]);
  assert.deepEqual(calls, [['new', 'fork']]);
  assert.deepEqual(Object.keys(stopwatch.read()), ['settle', 'unfreeze', 'hooks', 'total']);
});

test('a guest that does not answer in time, or cannot reseed, is not restored; what ends the start ends it too', async () => {
  await assert.rejects(restore({ init: (_request, _secrets, signal) => never(signal) }).done, isCode('restore_failed'));
  const older = { init: async () => ({ envdVersion: '0.6.13', steps: {} }) };
  await assert.rejects(
    restore({ ...older, unfreeze: (_secret, _request, signal) => never(signal) }).done,
    isCode('restore_failed'),
  );
  const refused = new AenvError('boot_failed', 'reseed failed');
  await assert.rejects(restore({ init: () => Promise.reject(refused) }).done, refused);
  const controller = new AbortController();
  const init = async () => ({ envdVersion: '0.6.13', steps: {}, hooks: 1 });
  const broken = restore({ init, runHooks: (_s, _r, signal) => never(signal) }, controller.signal);
  controller.abort(new AenvError('shutting_down', 'enough'));
  await assert.rejects(broken.done, isCode('shutting_down'));
});

test('hooks of which nothing is heard stop nothing, and are told', async () => {
  const { hooks } = await restore({
    init: async () => ({ envdVersion: '0.6.13', steps: {}, hooks: 1 }),
    runHooks: async () => Promise.reject(new Error('gone')),
  }).done;
  assert.deepEqual([hooks.length, hooks[0]?.ok, hooks[0]?.status], [1, false, 'nothing was heard of them: gone']);
});

async function watched(t: TestContext) {
  const clock = new ManualClock();
  const observatory = new Observatory({
    ...{ sampleMs: 60_000, keepMs: 60_000, clock, log: silentLogger },
    askGuest: (_guest, _cursor, signal) => never(signal),
    openConsole: () => ({ read: async () => [] }),
  });
  const f = await fixture({ observer: observatory, clock });
  t.after(async () => {
    await observatory.close();
    await f[Symbol.asyncDispose]();
  });
  return { sandboxes: f.sandboxes, host: f.host, observatory };
}

test('resume and fork go through the same steps; a machine-id is kept and renewed, and hooks are in the log', async (t) => {
  const { sandboxes, host, observatory } = await watched(t);
  const { sandboxId } = await sandboxes.create(CREATE);
  assert.deepEqual(host.released, [], 'a guest that is booted does not stand still');
  await sandboxes.pause(sandboxId, { memory: true });
  host.guestHooks = [
    { ...HOOK, output: 'one\ntwo\u001b[0m\n' },
    { ...HOOK, name: '20-y', ok: false, status: 'killed' },
  ];
  await sandboxes.resume(sandboxId, 60);
  host.guestHooks = [];
  const [fork] = await sandboxes.fork(sandboxId, { count: 1, timeoutSeconds: 60 });
  assert.ok(fork !== undefined && 'view' in fork);
  assert.deepEqual(host.released, ['resume', 'fork']);
  const ids = host.inits.map(({ machineId }) => machineId);
  assert.match(ids[0] ?? '', /^[0-9a-f]{32}$/);
  assert.match(ids[2] ?? '', /^[0-9a-f]{32}$/);
  assert.deepEqual([ids[1], new Set(ids).size], [undefined, 3]);
  assert.deepEqual(
    host.inits.map(({ event }) => event),
    [undefined, 'resume', 'fork'],
  );
  const said = observatory
    .logs(sandboxId, { direction: 'forward', limit: 1000 })
    ?.filter(({ logger }) => logger === 'hook');
  assert.deepEqual(
    said?.map(({ level, message, fields }) => [level, message, fields.hook]),
    [
      ['info', 'one', '10-x'],
      ['info', 'two[0m', '10-x'],
      ['info', 'hook 10-x ended after 3 ms: exit status 0', '10-x'],
      ['error', 'hook 20-y ended after 3 ms: killed', '20-y'],
    ],
  );
});
