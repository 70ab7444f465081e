import type { AssetKind } from '../../assets/contract.ts';

/** How far a verification is. */
export interface VerifyStep {
  /** a kind of asset, or the home with its disks and snapshots */
  readonly what: AssetKind | 'home';
  /** things of this kind that were read, and how many there are */
  readonly done: number;
  readonly of: number;
  /** of all kinds */
  readonly checkedBytes: number;
}

/** Told when a kind begins and whenever one of its things was read. */
export type VerifyProgress = (step: VerifyStep) => void;
