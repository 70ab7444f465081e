import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { loadConfig } from '../../config/load.ts';
import { RecordedOutput } from '../testing/recorded-output.ts';
import { doctor } from './doctor.ts';
import type { HostMends, HostProbes } from './probes.ts';

const GIB = 2 ** 30;
const KEY = '/var/lib/aenv/secrets/api-key';

const HEALTHY: HostProbes = {
  uid: 0,
  arch: 'x64',
  release: async () => 'bookworm',
  missingPackages: async () => [],
  network: async () => [{ name: 'tap devices', ok: true, detail: 'open' }],
  range: async () => '10.200.0.0/20',
  qemu: async () => ({ version: '10.0.2', path: '/q', origin: 'backports' }),
  accelerator: async () => ({ accelerator: 'tcg', reason: 'this host has no /dev/kvm' }),
  reachable: async () => {},
  disk: async () => ({ folder: '/var/lib/aenv', freeBytes: 50 * GIB, type: 'ext4' }),
  availableMemory: async () => 8 * GIB,
  mode: async () => 0o600,
  certificate: () => assert.fail('no certificate is configured'),
  daemon: async () => undefined,
  portFree: async () => {},
};

const NO_MENDS: HostMends = {
  installPackages: () => assert.fail('mended'),
  fetchQemu: () => assert.fail('mended'),
  openTun: () => assert.fail('mended'),
  closeSecrets: () => assert.fail('mended'),
};

interface Report {
  readonly ok: boolean;
  readonly checks: readonly { name: string; status: string; detail: string; remedy?: string }[];
}

async function examine(faults: Partial<HostProbes>, mends: Partial<HostMends> = {}, fix = false) {
  const output = new RecordedOutput();
  const context = {
    config: loadConfig({ env: { AENV_HOME: '/var/lib/aenv' } }),
    probes: { ...HEALTHY, ...faults },
    mends: { ...NO_MENDS, ...mends },
  };
  const good = await doctor(context, { fix, json: true, output });
  const report = JSON.parse(output.outLines.join('\n')) as Report;
  assert.equal(report.ok, good);
  return {
    good,
    report,
    err: output.errLines.join('\n'),
    troubles: report.checks.filter(({ status }) => status !== 'ok'),
  };
}

test('a host in order has no finding to mend, and mending it does nothing', async () => {
  const { good, troubles } = await examine({}, {}, true);
  assert.deepEqual([good, troubles], [true, []]);
});

const FAULTS: Readonly<Record<string, readonly [Partial<HostProbes>, string, RegExp, RegExp]>> = {
  'no root': [{ uid: 1000 }, 'root', /uid 1000/, /sudo/],
  'another machine': [{ arch: 'arm64' }, 'machine', /arm64/, /x86-64/],
  'another system': [
    { release: () => Promise.reject(new AenvError('host_unsupported', 'this host is not a Debian release: X')) },
    ...(['system', /not a Debian/, /./] as const),
  ],
  'missing packages': [{ missingPackages: async () => ['nftables', 'attr'] }, 'packages', /nftables attr/, /--fix/],
  'no QEMU': [{ qemu: async () => undefined }, 'QEMU', /none/, /--fix/],
  'a QEMU that does not run': [
    { qemu: () => Promise.reject(new AenvError('host_command_failed', '/q ended with exit code 127')) },
    ...(['QEMU', /exit code 127/, /doctor/] as const),
  ],
  'no network programs': [
    {
      network: async () => [{ name: 'network programs', ok: false, detail: 'not installed: nft', remedy: 'apt-get x' }],
    },
    ...(['network programs', /nft/, /apt-get x/] as const),
  ],
  'no free range': [
    { range: () => Promise.reject(new AenvError('network_exhausted', 'no free /20 in 10.200.0.0/14')) },
    ...(['addresses', /no free/, /network\.cidr/] as const),
  ],
  'a home that VMs cannot reach': [
    { reachable: () => Promise.reject(new AenvError('host_unsupported', 'cannot pass through /root')) },
    ...(['home folder', /\/root/, /./] as const),
  ],
  'a full disk': [
    { disk: async () => ({ folder: '/x', freeBytes: GIB / 2, type: 'xfs' }) },
    'disk',
    /512 MiB.*xfs/,
    /free/,
  ],
  'little memory': [{ availableMemory: async () => GIB / 4 }, 'memory', /256 MiB/, /./],
  'an open key file': [{ mode: async () => 0o644 }, 'key file', /0644/, new RegExp(`chmod 600 ${KEY}`)],
  'a port of another program': [
    { portFree: () => Promise.reject(new AenvError('port_in_use', 'another process listens on 127.0.0.1:8000')) },
    ...(['daemon', /127\.0\.0\.1:8000/, /--listen/] as const),
  ],
  'a daemon that hangs': [
    { daemon: async () => ({ url: 'http://127.0.0.1:8000', pid: 7, healthy: false }) },
    ...(['daemon', /pid 7.*does not answer/, /aenv down/] as const),
  ],
  'a probe that breaks': [{ availableMemory: () => Promise.reject(new Error('broken')) }, 'memory', /broken/, /./],
};

for (const [what, [faults, name, detail, remedy]] of Object.entries(FAULTS)) {
  test(`found, with its remedy: ${what}`, async () => {
    const { good, troubles } = await examine(faults);
    assert.equal(good, false);
    assert.deepEqual(
      troubles.map((finding) => [finding.name, finding.status]),
      [[name, 'fail']],
    );
    assert.match(troubles[0]?.detail ?? '', detail);
    assert.match(troubles[0]?.remedy ?? '', remedy);
  });
}

test('what only makes sandboxes worse is a warning, no failure', async () => {
  const old = await examine({ qemu: async () => ({ version: '7.2.22', path: '/q', origin: 'host' }) });
  assert.deepEqual([old.good, old.troubles.map(({ status }) => status)], [true, ['warn']]);
  const tmpfs = await examine({ disk: async () => ({ folder: '/x', freeBytes: 50 * GIB, type: 'tmpfs' }) });
  assert.deepEqual([tmpfs.good, tmpfs.troubles.map(({ status }) => status)], [true, ['warn']]);
});

test('--fix mends what it can, and the report is of the host after that', async () => {
  let mode = 0o644;
  let missing = ['nftables'];
  const { good, troubles, err } = await examine(
    {
      mode: async () => mode,
      missingPackages: async () => missing,
      network: async () => [{ name: 'tap devices', ok: false, detail: 'closed', remedy: 'chmod 0666 /dev/net/tun' }],
    },
    {
      closeSecrets: async () => {
        mode = 0o600;
      },
      installPackages: async (names) => {
        assert.deepEqual(names, ['nftables']);
        missing = [];
      },
      openTun: () => Promise.reject(new AenvError('host_unsupported', 'no such device')),
    },
    true,
  );
  assert.equal(good, false);
  assert.deepEqual(
    troubles.map(({ name }) => name),
    ['tap devices'],
  );
  assert.match(err, /mending tap devices failed: no such device/);
});

test('a running daemon explains its own port and range', async () => {
  const { good } = await examine({
    daemon: async () => ({ url: 'http://127.0.0.1:8000', pid: 7, healthy: true }),
    range: () => assert.fail('asked for a range'),
    portFree: () => assert.fail('asked for the port'),
  });
  assert.ok(good);
});

test('the table shows each check, and the remedy below what failed', async () => {
  const output = new RecordedOutput();
  const context = {
    config: loadConfig({ env: { AENV_HOME: '/var/lib/aenv' } }),
    probes: { ...HEALTHY, uid: 5 },
    mends: NO_MENDS,
  };
  assert.equal(await doctor(context, { fix: false, json: false, output }), false);
  assert.match(output.text, /^fail {2}root +runs as uid 5\n +-> sudo aenv doctor\nok {4}machine/);
  assert.match(output.text, /1 of 13 checks failed\.$/);
});
