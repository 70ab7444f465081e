import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { mock, test } from 'node:test';
import { watchStall } from './stall.ts';

test('a stream that is held back for too long is reported, one that moves or has ended is not', () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  try {
    const stream = new PassThrough();
    let stalls = 0;
    watchStall(stream, 1_000, () => stalls++);
    stream.pause();
    mock.timers.tick(999);
    stream.resume();
    stream.emit('resume');
    mock.timers.tick(5_000);
    assert.equal(stalls, 0);
    stream.pause();
    mock.timers.tick(1_000);
    assert.equal(stalls, 1);
    stream.destroy();
    stream.emit('close');
    stream.emit('pause');
    mock.timers.tick(5_000);
    assert.equal(stalls, 1);
  } finally {
    mock.timers.reset();
  }
});
