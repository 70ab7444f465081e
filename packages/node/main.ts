/**
 * The node daemon. It listens when this module has been evaluated; a service manager or `aenv up` starts it.
 *
 * Compiled code is kept beside the sources (where it cannot be written, it is not): a start then takes half the time, and
 * the compiler that strips types is not loaded into a process that runs for months. Only what is imported after this line
 * is served from there, hence the import below.
 */
import { enableCompileCache, flushCompileCache } from 'node:module';
import { fileURLToPath } from 'node:url';

enableCompileCache(fileURLToPath(new URL('../../.build/compile-cache', import.meta.url)));
const { runNode } = await import('./daemon/run.ts');
const { returnMemory } = await import('./daemon/return-memory.ts');
await runNode();
flushCompileCache();
returnMemory();
