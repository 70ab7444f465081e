import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { z } from 'zod';
import { DriveSchema } from '../sandboxes/drives/schema.ts';
import { json, optional, stringMap, time, withoutVersion } from './columns.ts';
import type { Parameters, RawRow } from './database.ts';
import type { SandboxChange, SandboxRecord } from './sandbox-record.ts';
import { StartColumn } from './start-column.ts';

/** Create options, version 1 of the JSON column. */
const Options = z.object({
  v: z.literal(1),
  envVars: stringMap,
  secure: z.boolean(),
  allowInternetAccess: z.boolean().nullable(),
  network: z.object({
    allowPublicTraffic: z.boolean(),
    maskRequestHost: z.string().exactOptional(),
    httpsPorts: z.array(z.int()),
  }),
  onTimeout: z.enum(['kill', 'pause']),
  autoResume: z.boolean(),
  // Rows of before this was kept do not have it.
  timeoutSeconds: z.number().exactOptional(),
  // Rows of before there were pauses do not have it.
  pauseMemory: z.boolean().default(true),
  // Rows of before there were attached drives do not have it.
  drives: z.array(DriveSchema).default([]),
  // Nor this one; it is what most templates have.
  start: StartColumn.default({ envVars: {}, user: 'user', workdir: '/home/user' }),
});

/** Where the VM is, version 1 of the JSON column. */
const Vm = z.object({
  v: z.literal(1),
  kind: z.enum(['qemu', 'firecracker', 'fake']),
  incarnation: z.string(),
  process: z.object({ pid: z.int(), startTime: z.int() }),
  runDir: z.string(),
  serialLog: z.string(),
  // Rows of before there were snapshots do not have it.
  memoryBase: z.string().default(''),
  // Nor do rows of before VMs under another VMM were taken over.
  build: z
    .object({ version: z.string(), accelerator: z.enum(['kvm', 'tcg', 'none']), machine: z.string() })
    .exactOptional(),
});

const artefact = z.object({ digest: z.string(), path: z.string() });
/** What the guest was booted from, version 1 of the JSON column. */
const Boot = z.object({ v: z.literal(1), kernel: artefact, toolsDrive: artefact });

const Checkpoint = z.object({
  v: z.literal(1),
  id: z.string(),
  memory: z.boolean(),
  bytes: z.int().min(0).exactOptional(),
  leftMs: z.int().min(0).exactOptional(),
  files: z.array(z.object({ path: z.string(), sizeBytes: z.int().min(0), digest: z.string() })).exactOptional(),
});

const Row = z.object({
  sandbox_id: z.string(),
  state: z.enum(['creating', 'running', 'pausing', 'paused', 'resuming', 'killing', 'ended', 'lost']),
  end_reason: z.enum(['killed', 'expired', 'shutdown', 'create_failed', 'vm_died', 'daemon_crashed']).nullable(),
  end_message: z.string().nullable(),
  template_id: z.string(),
  alias: z.string().nullable(),
  created_at: time,
  started_at: time,
  end_at: time,
  ended_at: time.nullable(),
  cpu_count: z.int(),
  memory_mb: z.int(),
  disk_size_mb: z.int(),
  envd_version: z.string(),
  envd_access_token: z.string().nullable(),
  traffic_access_token: z.string().nullable(),
  host_secret: z.string(),
  slot_index: z.int().nullable(),
  netns: z.string().nullable(),
  volume_id: z.string().nullable(),
  incarnation: z.string().nullable(),
  boot_id: z.string().nullable(),
  metadata: json(stringMap),
  options: json(Options),
  vm: json(Vm).nullable(),
  boot: json(Boot).nullable(),
  checkpoint: json(Checkpoint).nullable(),
  paused_at: time.nullable(),
});

/** @throws AenvError `ledger_failed` when the row is not what this version writes */
export function toSandboxRecord(raw: RawRow): SandboxRecord {
  const parsed = Row.safeParse(raw);
  if (!parsed.success) {
    const id = String(raw.sandbox_id);
    throw new AenvError('ledger_failed', `the ledger's row of sandbox ${id} is damaged`, { cause: parsed.error });
  }
  const row = parsed.data;
  const { v: _options, ...options } = row.options;
  return {
    sandboxId: row.sandbox_id,
    state: row.state,
    ...optional('endReason', row.end_reason),
    ...optional('endMessage', row.end_message),
    templateId: row.template_id,
    ...optional('alias', row.alias),
    createdAt: row.created_at,
    startedAt: row.started_at,
    endAt: row.end_at,
    ...optional('endedAt', row.ended_at),
    cpuCount: row.cpu_count,
    memoryMb: row.memory_mb,
    diskSizeMb: row.disk_size_mb,
    envdVersion: row.envd_version,
    ...optional('envdAccessToken', row.envd_access_token),
    ...optional('trafficAccessToken', row.traffic_access_token),
    hostSecret: row.host_secret,
    ...optional('slotIndex', row.slot_index),
    ...optional('netns', row.netns),
    ...optional('volumeId', row.volume_id),
    ...optional('incarnation', row.incarnation),
    ...optional('bootId', row.boot_id),
    metadata: row.metadata,
    ...options,
    ...optional('vm', row.vm === null ? null : withoutVersion(row.vm)),
    ...optional('boot', row.boot === null ? null : withoutVersion(row.boot)),
    ...optional('checkpoint', row.checkpoint === null ? null : withoutVersion(row.checkpoint)),
    ...optional('pausedAt', row.paused_at),
  };
}

export function toSandboxRow(record: SandboxRecord): Parameters {
  return {
    sandbox_id: record.sandboxId,
    state: record.state,
    end_reason: record.endReason ?? null,
    end_message: record.endMessage ?? null,
    template_id: record.templateId,
    alias: record.alias ?? null,
    created_at: record.createdAt.getTime(),
    started_at: record.startedAt.getTime(),
    end_at: record.endAt.getTime(),
    ended_at: record.endedAt?.getTime() ?? null,
    cpu_count: record.cpuCount,
    memory_mb: record.memoryMb,
    disk_size_mb: record.diskSizeMb,
    envd_version: record.envdVersion,
    envd_access_token: record.envdAccessToken ?? null,
    traffic_access_token: record.trafficAccessToken ?? null,
    host_secret: record.hostSecret,
    slot_index: record.slotIndex ?? null,
    netns: record.netns ?? null,
    volume_id: record.volumeId ?? null,
    incarnation: record.incarnation ?? null,
    boot_id: record.bootId ?? null,
    metadata: JSON.stringify(record.metadata),
    options: JSON.stringify({
      v: 1,
      envVars: record.envVars,
      secure: record.secure,
      allowInternetAccess: record.allowInternetAccess,
      network: record.network,
      onTimeout: record.onTimeout,
      autoResume: record.autoResume,
      timeoutSeconds: record.timeoutSeconds,
      pauseMemory: record.pauseMemory,
      drives: record.drives,
      start: { v: 1, ...record.start },
    }),
    vm: record.vm === undefined ? null : JSON.stringify({ v: 1, ...record.vm }),
    boot: record.boot === undefined ? null : JSON.stringify({ v: 1, ...record.boot }),
    checkpoint: record.checkpoint === undefined ? null : JSON.stringify({ v: 1, ...record.checkpoint }),
    paused_at: record.pausedAt?.getTime() ?? null,
  };
}

/** The record after the change: null clears a member. Secrets go when the sandbox is over. */
export function applyChange(record: SandboxRecord, change: SandboxChange): SandboxRecord {
  const wiped = change.state === 'ended' || change.state === 'lost';
  const start = wiped ? { ...record.start, envVars: {} } : record.start;
  const merged = {
    ...record,
    ...change,
    start,
    ...(wiped ? { hostSecret: '', envVars: {}, envdAccessToken: null, trafficAccessToken: null } : {}),
  };
  const { envdAccessToken, trafficAccessToken, slotIndex, netns, vm, volumeId, incarnation, bootId, ...others } =
    merged;
  const { checkpoint, pausedAt, boot, ...rest } = others;
  return {
    ...rest,
    ...optional('envdAccessToken', envdAccessToken ?? null),
    ...optional('trafficAccessToken', trafficAccessToken ?? null),
    ...optional('slotIndex', slotIndex ?? null),
    ...optional('netns', netns ?? null),
    ...optional('vm', vm ?? null),
    ...optional('boot', boot ?? null),
    ...optional('volumeId', volumeId ?? null),
    ...optional('incarnation', incarnation ?? null),
    ...optional('bootId', bootId ?? null),
    ...optional('checkpoint', checkpoint ?? null),
    ...optional('pausedAt', pausedAt ?? null),
  };
}
