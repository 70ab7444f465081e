import { startNetwork } from './world.ts';

/** A process with a network, slot 1 in use with the internet and slot 2 without, that waits to be killed. Its argument is the runtime folder. */

const [, , runtimeDir] = process.argv;
if (runtimeDir === undefined) throw new Error('usage: crasher.ts RUNTIME_DIR');
const network = await startNetwork({ runtimeDir });
// One after the other, so that each slot has the policy that its number says.
await network.pool.acquire({ internet: true });
await network.pool.acquire({ internet: false });
process.stdout.write('ready\n');
setInterval(() => {}, 1_000);
