import assert from 'node:assert/strict';
import { test } from 'node:test';
import { kernelArgs } from './kernel-args.ts';

const UUID = '12345678-9abc-8def-8123-456789abcdef';

test('under emulation the rate of the TSC is given, with KVM it is not', () => {
  const tcg = kernelArgs({ accelerator: 'tcg', tscKhz: 2596124, toolsUuid: UUID, hostname: 'sandbox' }).split(' ');
  assert.ok(tcg.includes('tsc_early_khz=2596124'));
  assert.ok(tcg.includes('tsc=reliable'));
  const kvm = kernelArgs({ accelerator: 'kvm', tscKhz: 2596124, toolsUuid: UUID, hostname: 'sandbox' });
  assert.doesNotMatch(kvm, /tsc/);
});

test('root, tools, network and name are told to init', () => {
  const words = kernelArgs({ accelerator: 'kvm', toolsUuid: UUID, hostname: 'sandbox' }).split(' ');
  assert.deepEqual(
    words.filter((word) => word.startsWith('aenv.')),
    [
      'aenv.root=LABEL=aenv-root',
      `aenv.tools=UUID=${UUID}`,
      'aenv.net=169.254.0.21/30,169.254.0.22,02:fc:00:00:00:01',
      'aenv.hostname=sandbox',
    ],
  );
  assert.ok(words.includes('panic=-1'));
});

test('a rate that is missing or absurd, and names that would add arguments, are refused', () => {
  const good = { accelerator: 'tcg', tscKhz: 2_000_000, toolsUuid: UUID, hostname: 'sandbox' } as const;
  for (const bad of [
    { ...good, tscKhz: Number.NaN },
    { ...good, tscKhz: 12 },
    { accelerator: 'tcg', toolsUuid: UUID, hostname: 'sandbox' } as const,
    { ...good, hostname: 'a init=/bin/sh' },
    { ...good, hostname: '' },
    { ...good, toolsUuid: `${UUID} quiet` },
  ]) {
    assert.throws(() => kernelArgs(bad), RangeError);
  }
});
