import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { INITIAL, isFinal, type Lifecycle, type LifecycleEvent, transition } from './state.ts';

const STATES: Record<Lifecycle['state'], Lifecycle> = {
  creating: { state: 'creating' },
  running: { state: 'running' },
  pausing: { state: 'pausing' },
  paused: { state: 'paused' },
  resuming: { state: 'resuming' },
  killing: { state: 'killing', reason: 'expired' },
  ended: { state: 'ended', reason: 'killed' },
  lost: { state: 'lost', reason: 'vm_died', message: 'gone' },
};

const EVENTS: Record<LifecycleEvent['type'], LifecycleEvent> = {
  ready: { type: 'ready' },
  failed: { type: 'failed', message: 'no disk' },
  pause: { type: 'pause' },
  kept_running: { type: 'kept_running' },
  paused: { type: 'paused' },
  resume: { type: 'resume' },
  end: { type: 'end', reason: 'killed' },
  released: { type: 'released' },
  vm_died: { type: 'vm_died', message: 'panic' },
  daemon_crashed: { type: 'daemon_crashed', message: 'found at start' },
};

const RUNNING: Lifecycle = { state: 'running' };
const PAUSED: Lifecycle = { state: 'paused' };
const KILLING: Lifecycle = { state: 'killing', reason: 'killed' };
const DIED: Lifecycle = { state: 'lost', reason: 'vm_died', message: 'panic' };
const CRASHED: Lifecycle = { state: 'lost', reason: 'daemon_crashed', message: 'found at start' };

/** Every pair of state and event that leads somewhere; all others are refused. */
const TABLE: Record<Lifecycle['state'], Partial<Record<LifecycleEvent['type'], Lifecycle>>> = {
  creating: {
    ready: RUNNING,
    failed: { state: 'ended', reason: 'create_failed', message: 'no disk' },
    end: KILLING,
    daemon_crashed: CRASHED,
  },
  running: { pause: { state: 'pausing' }, end: KILLING, vm_died: DIED, daemon_crashed: CRASHED },
  pausing: { paused: PAUSED, kept_running: RUNNING, vm_died: DIED, daemon_crashed: CRASHED },
  paused: { resume: { state: 'resuming' }, end: KILLING },
  resuming: { ready: RUNNING, paused: PAUSED, end: KILLING, daemon_crashed: CRASHED },
  killing: {
    released: { state: 'ended', reason: 'expired' },
    vm_died: { state: 'killing', reason: 'expired' },
    daemon_crashed: CRASHED,
  },
  ended: {},
  lost: {},
};

for (const from of Object.values(STATES)) {
  for (const event of Object.values(EVENTS)) {
    const expected = TABLE[from.state][event.type];
    test(`${from.state} + ${event.type} -> ${expected?.state ?? 'refused'}`, () => {
      if (expected !== undefined) return assert.deepEqual(transition(from, event), expected);
      assert.throws(
        () => transition(from, event),
        (error) => error instanceof AenvError && error.code === 'internal',
      );
    });
  }
}

test('a sandbox begins as creating, and only ended and lost are final', () => {
  assert.equal(INITIAL.state, 'creating');
  assert.deepEqual(
    Object.values(STATES)
      .map((lifecycle) => lifecycle.state)
      .filter(isFinal),
    ['ended', 'lost'],
  );
});
