/**
 * The block daemon of a node: serves disks over NBD, and is told what to do over its control socket. It is started by the
 * node, but is not its child for long: it goes on when the node ends, and VMs go on when it ends and is started again.
 */
import { runBlockd } from './process/run.ts';

process.title = 'aenv-blockd';
await runBlockd(process.argv.slice(2));
