import assert from 'node:assert/strict';
import { test } from 'node:test';
import { missingMemory, readAvailableMemory } from './memory.ts';

test('a guest needs its share of what is available, and starting guests count as well', () => {
  const host = { availableMb: 600, wantedMb: 512, promisedMb: 0, share: 0.5 };
  assert.equal(missingMemory(host), 0);
  assert.equal(missingMemory({ ...host, promisedMb: 512 }), 0);
  assert.equal(missingMemory({ ...host, promisedMb: 1024 }), 168);
  assert.equal(missingMemory({ ...host, promisedMb: 1e6, share: 0 }), 0);
});

test('reads the available memory of this host', () => {
  const mb = readAvailableMemory();
  assert.ok(mb > 10 && Number.isSafeInteger(mb), `${mb}`);
});
