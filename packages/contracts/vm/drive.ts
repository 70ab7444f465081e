/**
 * Where the bytes of a drive come from, as a VMM opens it. QEMU takes all three kinds, Firecracker files and devices.
 * `path` and `socket` are absolute and readable by the uid that the VM runs as.
 */
export type DriveSource =
  | { readonly kind: 'file'; readonly path: string; readonly format: 'raw'; readonly readOnly: boolean }
  | { readonly kind: 'nbd'; readonly socket: string; readonly export: string; readonly readOnly: boolean }
  | { readonly kind: 'device'; readonly path: string; readonly readOnly: boolean };
