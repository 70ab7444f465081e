import { GUEST_BUILD_PACKAGES } from '@aenv/guest/assets.ts';
import { IMAGES_HOST_PACKAGES } from '@aenv/images/base/packages.ts';
import { NETWORK_HOST_PACKAGES } from '@aenv/network/host/commands.ts';
import { VMM_HOST_PACKAGES } from '@aenv/vmm/host-packages.ts';
import { CERTIFICATE_HOST_PACKAGES } from '../../certificates/make/development-certificate.ts';

/** Every Debian package that a program of the host comes from which some room runs. */
export const HOST_PACKAGES: readonly string[] = [
  ...new Set([
    ...CERTIFICATE_HOST_PACKAGES,
    ...GUEST_BUILD_PACKAGES,
    ...IMAGES_HOST_PACKAGES,
    ...NETWORK_HOST_PACKAGES,
    ...VMM_HOST_PACKAGES,
  ]),
].sort();
