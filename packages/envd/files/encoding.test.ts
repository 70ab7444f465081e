import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chooseEncoding } from './encoding.ts';

test('gzip only for a client that asks for it alone, or refuses identity', () => {
  const cases: [string | undefined, string][] = [
    [undefined, 'identity'],
    ['', 'identity'],
    ['gzip', 'gzip'],
    ['GZIP;q=0.5', 'gzip'],
    ['gzip;q=0', 'identity'],
    ['gzip, deflate', 'identity'],
    ['gzip, deflate, br, zstd', 'identity'],
    ['identity', 'identity'],
    ['*', 'identity'],
    ['gzip;q=1.0, identity;q=0.5', 'gzip'],
    ['gzip;q=0.5, identity', 'identity'],
    ['identity;q=0, gzip', 'gzip'],
    ['identity;q=0, *', 'gzip'],
    ['br', 'identity'],
  ];
  for (const [header, expected] of cases) assert.equal(chooseEncoding(header), expected, header);
  for (const header of ['identity;q=0', '*;q=0', 'identity;q=0, br, gzip;q=0']) {
    assert.throws(() => chooseEncoding(header), { status: 406 }, header);
  }
});
