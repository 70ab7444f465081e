/**
 * Runs beside the kernel, which is deaf while a cell is busy. The number of a cell on descriptor 5 asks to end it: the
 * kernel is told, in case that the cell only waits, and if it does not react, what V8 executes there is stopped.
 * (Stopping a thread that has nothing to do would hit whatever it does next.)
 */
import { Session } from 'node:inspector';
import { Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { workerData as current, parentPort } from 'node:worker_threads';

const INTERRUPTS_FD = 5;
const REACTION_MS = 500;
const session = new Session();
session.connectToMainThread();
for await (const line of createInterface({ input: new Socket({ fd: INTERRUPTS_FD, writable: false }) })) {
  const count = Number(line);
  const runs = () => Atomics.load(current, 0) === count;
  if (!runs()) continue;
  parentPort.postMessage(count);
  await sleep(REACTION_MS);
  if (runs()) session.post('Runtime.terminateExecution', () => {});
}
