import { statfs } from 'node:fs/promises';

// linux/magic.h and the sources of the file systems: NFS, CIFS, SMB, SMB2, FUSE.
const NETWORK_TYPES = new Set([0x6969, 0xff534d42, 0x517b, 0xfe534d42, 0x65735546]);

/** Whether others may change the files without this kernel knowing, so that it cannot tell. */
export function isNetworkType(type: number): boolean {
  // Some runtimes give the number with a sign.
  return NETWORK_TYPES.has(type >>> 0);
}

/** @throws the error of statfs(2) */
export async function isOnNetworkMount(path: string): Promise<boolean> {
  return isNetworkType((await statfs(path)).type);
}
