import type { DriveStart } from '../../sandboxes/drives/contract.ts';
import type { DriveImages, NewDrive } from '../../templates/drives/contract.ts';

/** Notes what it is asked for. */
export class FakeDrives implements DriveImages {
  readonly prepared: NewDrive[] = [];
  /** thrown by the next `use` */
  failure: unknown;

  async use<T>(drives: readonly NewDrive[], work: (starts: readonly DriveStart[]) => Promise<T>): Promise<T> {
    if (this.failure !== undefined) throw this.failure;
    this.prepared.push(...drives);
    const starts = drives.map(({ image: _image, sizeMb = 10_240, ...drive }, at): DriveStart => {
      const label = `aenv-drive-${at + 1}`;
      return { drive: { ...drive, label, sizeMb }, disk: { kind: 'layers', layers: ['/drive.layer'] } };
    });
    return await work(starts);
  }
}
