/**
 * The network link inside every sandbox. It is the same everywhere, so that a snapshot restores in any slot; what
 * differs is only the address that the host dials, which the slot's namespace translates.
 */
export const GUEST_LINK = {
  address: '169.254.0.21',
  prefixLength: 30,
  /** the tap's address; also where the guest asks for names */
  gateway: '169.254.0.22',
  mac: '02:fc:00:00:00:05',
  tapMac: '02:fc:00:00:00:01',
} as const;

/** The port of envd in every guest. */
export const ENVD_PORT = 49983;
