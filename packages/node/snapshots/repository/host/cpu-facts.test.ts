import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseCpuInfo, readCpuFacts } from './cpu-facts.ts';

test('the first processor of an x86 and of an ARM host', () => {
  const x86 =
    'processor\t: 0\nmodel name\t: Some CPU @ 2.0GHz: x\nflags\t\t: fpu vme  avx2\n\nprocessor\t: 1\nflags\t: no\n';
  assert.deepEqual(parseCpuInfo(x86), { model: 'Some CPU @ 2.0GHz: x', flags: ['fpu', 'vme', 'avx2'] });
  const arm = 'processor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\nCPU revision\t: 1\n\n';
  assert.deepEqual(parseCpuInfo(arm), { model: '0x41 0xd0c 1', flags: ['fp', 'asimd'] });
  assert.deepEqual(parseCpuInfo(''), { model: 'unknown', flags: [] });
});

test('this host has a processor', async () => {
  const { model, flags, tscKhz } = await readCpuFacts(5);
  assert.ok(model !== '' && flags.length > 0);
  assert.equal(tscKhz, 5);
  assert.equal('tscKhz' in (await readCpuFacts()), false);
});
