import type { AssetUses } from '../contract.ts';

/** For tests in which nobody collects anything. */
export const unguarded: AssetUses = {
  during: (work) => work(async () => {}),
  refresh: async () => {},
};
