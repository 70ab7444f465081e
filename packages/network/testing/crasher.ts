import { startNetwork } from './world.ts';

/** A process with a network and two slots in use that waits to be killed. Its argument is the runtime folder. */

const [, , runtimeDir] = process.argv;
if (runtimeDir === undefined) throw new Error('usage: crasher.ts RUNTIME_DIR');
const network = await startNetwork({ runtimeDir });
await Promise.all([network.pool.acquire({ internet: true }), network.pool.acquire({ internet: false })]);
process.stdout.write('ready\n');
setInterval(() => {}, 1_000);
