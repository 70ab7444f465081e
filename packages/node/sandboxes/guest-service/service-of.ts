import type { StartState } from '../../templates/contract.ts';
import type { GuestService } from './contract.ts';

/** What the guest of a template or of a sandbox begins with, if anything. */
export function serviceOf(
  { start }: { readonly start: StartState },
  accessToken: string | undefined,
): { readonly service?: GuestService } {
  const { startCommand, ready, workdir } = start;
  if (startCommand === undefined && ready === undefined) return {};
  return {
    service: {
      workdir,
      ...(startCommand === undefined ? {} : { startCommand }),
      ...(ready === undefined ? {} : { ready }),
      ...(accessToken === undefined ? {} : { accessToken }),
    },
  };
}
