import { run } from '@aenv/platform/process/run.ts';

/**
 * Whether an attribute goes into the root file system. `security.capability` and the user's own are the image's
 * business; `trusted.overlay.*` and SELinux labels belong to the machine that made the layer.
 */
export function isKept(name: string): boolean {
  return name === 'security.capability' || name.startsWith('user.') || name.startsWith('system.posix_acl_');
}

/** Attributes to set, by path relative to the root (one byte a character). */
export type PendingXattrs = Map<string, ReadonlyMap<string, Buffer>>;

/**
 * Sets attributes with one run of setfattr(1): Node has no call for them. The form is that of `getfattr --dump`.
 * @param root absolute path of the root folder
 * @throws AenvError `host_command_failed`, `host_command_missing`
 */
export async function setXattrs(root: string, pending: PendingXattrs, signal?: AbortSignal): Promise<void> {
  if (pending.size === 0) return;
  const lines: string[] = [];
  for (const [path, xattrs] of pending) {
    lines.push(`# file: ./${octalEscaped(path)}`);
    for (const [name, value] of xattrs) lines.push(`${octalEscaped(name)}=0x${value.toString('hex')}`);
    lines.push('');
  }
  await run(['setfattr', '--no-dereference', '--restore=-'], {
    cwd: root,
    input: `${lines.join('\n')}\n`,
    ...(signal === undefined ? {} : { signal }),
  });
}

/** setfattr undoes `\ooo` in names and in paths. */
function octalEscaped(text: string): string {
  return [...Buffer.from(text, 'latin1')]
    .map((byte) =>
      byte > 0x20 && byte < 0x7f && byte !== 0x5c && byte !== 0x3d
        ? String.fromCharCode(byte)
        : `\\${byte.toString(8).padStart(3, '0')}`,
    )
    .join('');
}
