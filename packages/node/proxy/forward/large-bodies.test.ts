import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { childEvent } from '@aenv/platform/testing/child-event.ts';
import { freshAddress } from '../testing/guests.ts';
import { House } from '../testing/house.ts';

const MIB = 1024 * 1024;

test('bodies of 64 MiB pass whole in every framing, and the memory of the proxy stays flat', async () => {
  await using house = await House.open();
  const address = freshAddress();
  // Server and client run elsewhere, so that what is measured here is the proxy.
  const other = fork(fileURLToPath(new URL('../testing/transfers.ts', import.meta.url)), [address]);
  try {
    const [port] = await childEvent(other, other, 'message');
    assert.equal(typeof port, 'number');
    house.directory.run('ia', address);
    const before = process.memoryUsage.rss();
    let peak = before;
    const watch = setInterval(() => {
      peak = Math.max(peak, process.memoryUsage.rss());
    }, 10);
    other.send(house.url);
    const [results] = await childEvent(other, other, 'message');
    clearInterval(watch);
    assert.deepEqual(results, { '/length': true, '/chunked': true, '/close': true, '/upload': true });
    const rise = (peak - before) / MIB;
    assert.ok(rise < 32, `memory rose by ${rise.toFixed(1)} MiB`);
  } finally {
    other.kill('SIGKILL');
  }
});
