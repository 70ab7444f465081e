import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { test } from 'node:test';
import { childEvent } from './child-event.ts';

test('an event of a process comes, or the end of the process is told instead', async () => {
  const child = spawn('sh', ['-c', 'echo up; exit 7'], { stdio: ['ignore', 'pipe', 'ignore'] });
  assert.deepEqual(await childEvent(child, child.stdout, 'data'), [Buffer.from('up\n')]);
  await assert.rejects(childEvent(child, child.stdout, 'never'), /sh ended with code 7 before its never/);
});
