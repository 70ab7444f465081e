import { z } from 'zod';
import type { SelftestClient, TestSandbox } from './client.ts';

const Witness = z.object({
  pid: z.int(),
  n: z.int(),
  whole: z.boolean(),
  loopback: z.int(),
  outside: z.array(z.string()),
  inbound: z.int(),
  seeded: z.int(),
  draw: z.number(),
  connected: z.boolean().default(false),
});
export type Witness = z.output<typeof Witness>;

/** What a guest says of itself, in one command. */
export interface GuestFacts {
  /** seconds by which its clock was ahead of the host's, at least; 0 when it may have been right */
  readonly clockError: number;
  /** seconds of its monotonic clock */
  readonly uptime: number;
  readonly hostname: string;
  readonly machineId: string;
  readonly bootId: string;
  readonly uuid: string;
  readonly random: string;
  readonly witness: Witness | undefined;
}

const COMMAND = [
  'date +%s.%N',
  'cut -d" " -f1 /proc/uptime',
  'cat /proc/sys/kernel/hostname /etc/machine-id /proc/sys/kernel/random/boot_id /proc/sys/kernel/random/uuid',
  'head -c16 /dev/urandom | od -An -tx1 | tr -d " \\n"; echo',
  'cat /run/witness 2> /dev/null || true',
].join('; ');

export async function readFacts(client: SelftestClient, sandbox: TestSandbox): Promise<GuestFacts> {
  const begin = Date.now() / 1000;
  const [date, uptime, hostname = '', machineId = '', bootId = '', uuid = '', random = '', witness = ''] = (
    await client.run(sandbox, COMMAND)
  ).split('\n');
  const end = Date.now() / 1000;
  const clock = Number(date);
  return {
    clockError: clock < begin ? clock - begin : Math.max(0, clock - end),
    ...{ uptime: Number(uptime), hostname, machineId, bootId, uuid, random },
    witness: witness === '' ? undefined : Witness.parse(JSON.parse(witness)),
  };
}
