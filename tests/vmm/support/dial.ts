import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { NetworkSlot } from '@aenv/contracts/vm/slot.ts';
import type { GuestConnection } from '@aenv/vmm/contract/harness.ts';

/** A program in the namespace of the slot that connects to the guest. */
export function dial(slot: NetworkSlot): GuestConnection {
  const child = spawn(
    'nsenter',
    [`--net=${slot.netns}`, '--', process.execPath, '--no-warnings', join(import.meta.dirname, 'dialer.ts')],
    { stdio: ['pipe', 'pipe', 'inherit'] },
  );
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const waiting: ((answer: boolean) => void)[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => waiting.shift()?.(line === 'true'));
  const ask = (command: string, ms: number) =>
    new Promise<boolean>((resolve) => {
      waiting.push(resolve);
      child.stdin.write(`${command} ${ms}\n`);
    });
  return {
    asks: (ms) => ask('asks', ms),
    asksAnew: (ms) => ask('asksAnew', ms),
    async close() {
      child.stdin.end();
      await ended;
    },
  };
}
