import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { INITIAL, isFinal, type Lifecycle, type LifecycleEvent, transition } from './state.ts';

const STATES: Record<Lifecycle['state'], Lifecycle> = {
  creating: { state: 'creating' },
  running: { state: 'running' },
  killing: { state: 'killing', reason: 'expired' },
  ended: { state: 'ended', reason: 'killed' },
  lost: { state: 'lost', reason: 'vm_died', message: 'gone' },
};

const EVENTS: Record<LifecycleEvent['type'], LifecycleEvent> = {
  ready: { type: 'ready' },
  failed: { type: 'failed', message: 'no disk' },
  end: { type: 'end', reason: 'killed' },
  released: { type: 'released' },
  vm_died: { type: 'vm_died', message: 'panic' },
  daemon_crashed: { type: 'daemon_crashed', message: 'found at start' },
};

/** Every pair of state and event; undefined means refused. */
const TABLE: Record<Lifecycle['state'], Record<LifecycleEvent['type'], Lifecycle | undefined>> = {
  creating: {
    ready: { state: 'running' },
    failed: { state: 'ended', reason: 'create_failed', message: 'no disk' },
    end: { state: 'killing', reason: 'killed' },
    released: undefined,
    vm_died: undefined,
    daemon_crashed: { state: 'lost', reason: 'daemon_crashed', message: 'found at start' },
  },
  running: {
    ready: undefined,
    failed: undefined,
    end: { state: 'killing', reason: 'killed' },
    released: undefined,
    vm_died: { state: 'lost', reason: 'vm_died', message: 'panic' },
    daemon_crashed: { state: 'lost', reason: 'daemon_crashed', message: 'found at start' },
  },
  killing: {
    ready: undefined,
    failed: undefined,
    end: undefined,
    released: { state: 'ended', reason: 'expired' },
    vm_died: { state: 'killing', reason: 'expired' },
    daemon_crashed: { state: 'lost', reason: 'daemon_crashed', message: 'found at start' },
  },
  ended: {
    ready: undefined,
    failed: undefined,
    end: undefined,
    released: undefined,
    vm_died: undefined,
    daemon_crashed: undefined,
  },
  lost: {
    ready: undefined,
    failed: undefined,
    end: undefined,
    released: undefined,
    vm_died: undefined,
    daemon_crashed: undefined,
  },
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
