/**
 * What envd says of itself. Clients open features by this number, so it names only what works: 0.5.7 has files as octet
 * streams and closable stdin; metadata of files starts at 0.6.2, watching with entries at 0.6.4.
 */
export const ENVD_VERSION = '0.5.7';
