/**
 * What envd says of itself. Clients open features by this number, so it names only what works: files as octet streams
 * since 0.5.7, metadata of files since 0.6.2, watching with entries since 0.6.3 and on network mounts since 0.6.4.
 */
export const ENVD_VERSION = '0.6.13';
