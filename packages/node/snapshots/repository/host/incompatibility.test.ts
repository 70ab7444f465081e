import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CpuFacts, HostFacts, SnapshotFacts } from '../../contract.ts';
import { incompatibility } from './incompatibility.ts';

const CPU: CpuFacts = { model: 'Model A', flags: ['sse2', 'avx'], tscKhz: 2_000_000 };

function facts(
  accelerator: 'kvm' | 'tcg' | 'none',
  cpu: CpuFacts = CPU,
): Pick<SnapshotFacts, 'vmm' | 'cpu'> & HostFacts {
  const build = { version: '10.0.2', accelerator, machine: 'microvm' };
  return { vmm: { kind: 'qemu', build }, kind: 'qemu', build, cpu };
}

test('the host that made a snapshot can run it, also when its clock is measured a little differently', () => {
  const again = facts('kvm', { ...CPU, flags: ['avx', 'more', 'sse2'], tscKhz: 2_000_900 });
  assert.equal(incompatibility(facts('kvm'), again), undefined);
  assert.equal(incompatibility(facts('none', { model: '', flags: [] }), facts('none')), undefined);
});

test('each difference that matters is named, all of them together', () => {
  const host: HostFacts = {
    kind: 'firecracker',
    build: { version: '1.9', accelerator: 'tcg', machine: 'other' },
    cpu: { model: 'Model B', flags: ['sse2'], tscKhz: 2_010_000 },
  };
  const reason = incompatibility(facts('kvm'), host) ?? '';
  for (const part of [
    'the VMM was qemu, here it is firecracker',
    'the version of qemu was 10.0.2, here it is 1.9',
    'the accelerator was kvm, here it is tcg',
    'the machine was microvm, here it is other',
    'the processor was Model A, here it is Model B',
    'lacks the features avx',
    'its TSC ran at 2000000 kHz, that of this host runs at 2010000 kHz',
  ]) {
    assert.ok(reason.includes(part), `${part}\nin: ${reason}`);
  }
});

test('a long list of missing features is cut short', () => {
  const flags = Array.from({ length: 20 }, (_, i) => `f${i}`);
  assert.match(incompatibility(facts('kvm', { ...CPU, flags }), facts('kvm')) ?? '', /f0, .*f7 and 12 more$/);
});

test('under emulation the processor does not matter, but the rate of its clock does', () => {
  const other = { model: 'Model B', flags: [] };
  assert.equal(incompatibility(facts('tcg'), facts('tcg', { ...other, tscKhz: 2_000_000 })), undefined);
  assert.match(incompatibility(facts('tcg'), facts('tcg', { ...other, tscKhz: 3_000_000 })) ?? '', /TSC/);
  assert.match(incompatibility(facts('tcg'), facts('tcg', other)) ?? '', /this host has none/);
});
