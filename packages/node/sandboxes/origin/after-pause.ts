import type { CheckpointRef, SandboxRecord } from '../../store/sandbox-record.ts';
import type { Checkpoints } from '../checkpoints/contract.ts';
import { serviceOf } from '../guest-service/service-of.ts';
import type { StartRequest } from '../starting/starting.ts';
import { firstInit } from './first-init.ts';

type Beginning = Pick<StartRequest, 'from' | 'init' | 'service'>;

/** It goes on where it was: all that it is and has is in its memory. */
export function continuing({ id }: CheckpointRef): Beginning {
  return { from: { kind: 'checkpoint', id, event: 'resume' }, init: {} };
}

/** It boots its disk as it was, as the same sandbox, and begins with what its template begins with. */
export async function booting(
  record: SandboxRecord,
  checkpoint: CheckpointRef,
  checkpoints: Pick<Checkpoints, 'disksOf'>,
): Promise<Beginning> {
  const from = { kind: 'disk', ...(await checkpoints.disksOf(checkpoint, record.drives)) } as const;
  return { from, init: firstInit(record), ...serviceOf(record, record.envdAccessToken) };
}
