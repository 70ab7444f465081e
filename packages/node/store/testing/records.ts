import type { Template } from '../../templates/contract.ts';
import { localLayers } from '../../templates/layers.ts';
import type { SandboxRecord } from '../sandbox-record.ts';

/** A record with everything set, for tests. */
export function fullRecord(changes: Partial<SandboxRecord> = {}): SandboxRecord {
  return {
    sandboxId: 'i0000000000000000000a',
    state: 'running',
    templateId: 'template000000000000',
    alias: 'base',
    createdAt: new Date('2026-01-02T03:04:05.006Z'),
    startedAt: new Date('2026-01-02T03:04:06.007Z'),
    endAt: new Date('2026-01-02T03:09:06.007Z'),
    cpuCount: 1,
    memoryMb: 512,
    diskSizeMb: 10240,
    metadata: { 'a b': 'c&d', 'k.e"y': 'ü' },
    envVars: { GREETING: 'hello' },
    secure: true,
    envdVersion: '0.6.13',
    envdAccessToken: 'envd-token',
    trafficAccessToken: 'traffic-token',
    allowInternetAccess: null,
    network: { allowPublicTraffic: false, maskRequestHost: 'localhost', httpsPorts: [8443] },
    onTimeout: 'kill',
    autoResume: false,
    hostSecret: 'host-secret',
    slotIndex: 7,
    netns: '/run/netns/slot7',
    vm: {
      kind: 'fake',
      incarnation: 'inc1',
      process: { pid: 42, startTime: 4711 },
      runDir: '/run/vm/inc1',
      serialLog: '/home/logs/inc1',
      memoryBase: '/home/memory/zero-512.mem',
      build: { version: '10.0.8', accelerator: 'tcg', machine: 'microvm' },
    },
    boot: { kernel: { digest: 'k', path: '/kernel' }, toolsDrive: { digest: 't', path: '/tools' } },
    pauseMemory: true,
    drives: [
      {
        ...{ driveId: 'data', label: 'aenv-drive-1', mountPath: '/data', subPath: 'a/b' },
        ...{ readOnly: true, sizeMb: 10240 },
      },
    ],
    start: { envVars: { PATH: '/bin' }, user: 'user', workdir: '/home/user' },
    volumeId: 'vol1',
    incarnation: 'inc1',
    bootId: '7b1c5a3e-0000-4000-8000-000000000000',
    ...changes,
  };
}

/** A template with everything set, for tests. */
export function fullTemplate(changes: Partial<Template> = {}): Template {
  return {
    templateId: 'template000000000000',
    buildId: '2f6a0c8e-5a1b-4e8e-9a55-6f0f5b1f7a10',
    aliases: ['base'],
    cpuCount: 1,
    memoryMb: 512,
    diskSizeMb: 10240,
    createdAt: new Date('2026-01-01T00:00:00.000Z'),
    updatedAt: new Date('2026-01-01T00:00:01.000Z'),
    lastSpawnedAt: null,
    spawnCount: 0,
    envdVersion: '0.6.13',
    source: { imageDigest: 'sha256:00', layers: localLayers(['/var/lib/aenv/layers/00/overlaybd.commit']) },
    start: { envVars: { PATH: '/bin' }, user: 'user', workdir: '/home/user' },
    ...changes,
  };
}
