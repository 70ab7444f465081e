import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { Rollback } from '@aenv/platform/rollback/rollback.ts';
import { partsOf } from './parts.ts';

test('parts end in reverse, and one that takes long is named until it has ended', async () => {
  const taken = new Rollback();
  const hanging = Promise.withResolvers<void>();
  const named = Promise.withResolvers<void>();
  const said: unknown[] = [];
  const ended: string[] = [];
  const part = partsOf(
    taken,
    {
      ...silentLogger,
      warn(message, fields) {
        if (said.push([message, fields?.part]) === 2) named.resolve();
      },
    },
    5,
  );
  part('first', () => ended.push('first'));
  part('second', async () => {
    await hanging.promise;
    ended.push('second');
  });
  part('third', () => ended.push('third'));
  const over = taken.run();
  await named.promise;
  hanging.resolve();
  await over;
  assert.deepEqual(ended, ['third', 'second', 'first']);
  assert.deepEqual(new Set(said.map(String)), new Set(['the end waits for a part,second']));
});
