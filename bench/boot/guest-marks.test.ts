import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseMarks } from './guest-marks.ts';

test('what a guest says of its boot is read from its console', () => {
  const console = [
    'aenv-init: starting envd 1105 ms after the kernel',
    '{"logger":"envd","level":"info","message":"envd listens","port":49983,"uptimeMs":1276}',
  ].join('\r\n');
  assert.deepEqual(parseMarks(console), { kernelToEnvdStart: 1105, envdStartToListening: 1276 });
  assert.deepEqual(parseMarks('anything else'), {});
});
