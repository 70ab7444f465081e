import type { Template } from '../../templates/contract.ts';
import type { GuestService } from './contract.ts';

/** What the guest of a template begins with, if anything. */
export function serviceOf({ start }: Template, accessToken: string | undefined): { readonly service?: GuestService } {
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
