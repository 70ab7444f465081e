import { readdir, readFile } from 'node:fs/promises';
import { run } from '@aenv/platform/process/run.ts';

/**
 * The address that the host dials to reach a sandbox, as the network namespace of its VM process has it: the one that is
 * not of the link inside.
 * @throws Error when there is no such process
 */
export async function slotAddress(sandboxId: string): Promise<string> {
  const pid = await vmProcess(sandboxId);
  const { stdout } = await run([
    'nsenter',
    `--net=/proc/${pid}/ns/net`,
    'ip',
    '-4',
    '-o',
    'addr',
    'show',
    'scope',
    'global',
  ]);
  const addresses = [...stdout.matchAll(/ inet (\d+\.\d+\.\d+\.\d+)\//g)].flatMap(([, address]) => address ?? []);
  const address = addresses.find((candidate) => !candidate.startsWith('169.254.'));
  if (address === undefined) throw new Error(`the slot of ${sandboxId} has no address`);
  return address;
}

/** pid of the VM of a sandbox. @throws Error when there is none */
export async function vmProcess(sandboxId: string): Promise<string> {
  for (const pid of await readdir('/proc')) {
    if (!/^\d+$/.test(pid)) continue;
    const commandLine = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    if (commandLine.includes(`\0guest=${sandboxId}`)) return pid;
  }
  throw new Error(`no VM process of ${sandboxId}`);
}
