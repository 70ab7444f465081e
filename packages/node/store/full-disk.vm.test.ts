import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { run } from '@aenv/platform/process/run.ts';
import { openLedger } from './ledger.ts';
import { fullRecord } from './testing/records.ts';

it('a full disk is no_space, and the ledger goes on when there is space again', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'aenv-full-'));
  await run(['mount', '-t', 'tmpfs', '-o', 'size=2m', 'tmpfs', folder]);
  try {
    using ledger = openLedger(folder);
    ledger.sandboxes.insert(fullRecord({ sandboxId: 'ifirst' }));
    const filler = join(folder, 'filler');
    assert.throws(() => writeFileSync(filler, Buffer.alloc(4 * 1024 * 1024)), /ENOSPC/);
    const big = fullRecord({ sandboxId: 'ibig', metadata: { a: 'x'.repeat(60_000) } });
    assert.throws(
      () => ledger.sandboxes.insert(big),
      (error: unknown) => error instanceof AenvError && error.code === 'no_space',
    );
    assert.equal(ledger.sandboxes.get('ibig'), undefined);
    assert.notEqual(ledger.sandboxes.get('ifirst'), undefined);
    rmSync(filler);
    ledger.sandboxes.insert(big);
    assert.deepEqual(ledger.sandboxes.get('ibig'), big);
  } finally {
    await run(['umount', folder]);
    rmSync(folder, { recursive: true });
  }
});
