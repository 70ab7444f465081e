/**
 * The block daemon of a node: serves disks over NBD, and is told what to do over its control socket. It is started by the
 * node, but is not its child for long: it goes on when the node ends, and VMs go on when it ends and is started again.
 *
 * Compiled code is kept beside the sources, as the node does; only what is imported after this line is served from there.
 */
import { enableCompileCache } from 'node:module';
import { fileURLToPath } from 'node:url';

enableCompileCache(fileURLToPath(new URL('../../../.build/compile-cache', import.meta.url)));
process.title = 'aenv-blockd';
const { runBlockd } = await import('./process/run.ts');
await runBlockd(process.argv.slice(2));
