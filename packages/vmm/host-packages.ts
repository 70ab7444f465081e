/**
 * Debian packages that the VMM room runs programs of: nsenter and setpriv. QEMU is not among them, `ensureQemu` gets it
 * where the host has none that is new enough.
 */
export const VMM_HOST_PACKAGES: readonly string[] = ['util-linux'];
