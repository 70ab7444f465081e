import { z } from 'zod';
import type { SnapshotManifest } from '../../contract.ts';
import { isSnapshotId } from '../layout.ts';

/** Version of what is written. A reader of this version knows all up to it, and refuses later ones. */
export const MANIFEST_VERSION = 1;

const Digest = z.string().regex(/^sha256:[0-9a-f]{64}$/);
const Count = z.int().nonnegative();
const Text = z.string().max(4096);

const StoredArtefact = z.strictObject({
  // A name, never a path that leads elsewhere.
  file: z.string().regex(/^[a-z][a-z.]*$/),
  sizeBytes: Count,
  digest: Digest,
});

const BootArtefact = z.strictObject({ digest: Text, path: Text });

/** A manifest as it is kept, version 1. */
const StoredManifest = z.strictObject({
  id: z.string().refine(isSnapshotId),
  createdAt: z.iso.datetime(),
  kind: z.enum(['template', 'pause', 'snapshot', 'fork']),
  source: z.strictObject({ sandboxId: Text.exactOptional(), templateId: Text.exactOptional() }),
  names: z.array(Text),
  memory: z.strictObject({
    memoryMb: z.int().positive(),
    base: Digest,
    delta: StoredArtefact.extend({ crc32: Count, dataBytes: Count, zeroBytes: Count }).exactOptional(),
  }),
  deviceState: StoredArtefact,
  disk: z.strictObject({ state: z.record(z.string(), z.json()), paths: z.array(Text) }),
  vmm: z.strictObject({
    kind: z.enum(['qemu', 'firecracker', 'fake']),
    build: z.strictObject({ version: Text, accelerator: z.enum(['kvm', 'tcg', 'none']), machine: Text }),
  }),
  machine: z.strictObject({ cpuCount: z.int().positive(), drives: z.array(Text) }),
  cpu: z.strictObject({ model: Text, flags: z.array(Text), tscKhz: Count.exactOptional() }),
  kernel: BootArtefact,
  toolsDrive: BootArtefact,
  envd: z.strictObject({ hostSecret: Text, version: Text, bootId: Text }),
});
type StoredManifest = z.infer<typeof StoredManifest>;

export function toStored(manifest: SnapshotManifest): StoredManifest {
  const { memory, disk, machine, cpu, vmm } = manifest;
  return {
    id: manifest.id,
    createdAt: manifest.createdAt.toISOString(),
    kind: manifest.kind,
    source: { ...manifest.source },
    names: [...manifest.names],
    memory: {
      memoryMb: memory.memoryMb,
      base: memory.base,
      ...(memory.delta === undefined ? {} : { delta: { ...memory.delta } }),
    },
    deviceState: { ...manifest.deviceState },
    disk: { state: structuredClone(disk.state) as StoredManifest['disk']['state'], paths: [...disk.paths] },
    vmm: { kind: vmm.kind, build: { ...vmm.build } },
    machine: { cpuCount: machine.cpuCount, drives: [...machine.drives] },
    cpu: { ...cpu, flags: [...cpu.flags] },
    kernel: { ...manifest.kernel },
    toolsDrive: { ...manifest.toolsDrive },
    envd: { ...manifest.envd },
  };
}

/** @throws z.ZodError if it is not what `toStored` gives */
export function fromStored(value: unknown): SnapshotManifest {
  const stored = StoredManifest.parse(value);
  return { ...stored, createdAt: new Date(stored.createdAt) };
}
