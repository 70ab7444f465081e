/** File in the folder of a captured machine with what the guest has written to its disk. */
export const DISK_LAYER = 'disk.layer';
/** and what that was when it was written */
export const DISK_SUM = 'disk.json';
