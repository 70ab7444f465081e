import { readdir, readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { identify, type ProcessIdentity } from '@aenv/platform/process/identity.ts';

/** Programs that a VM process is, or is started through. */
const VMM = /^(qemu-system-.+|firecracker|nsenter|setpriv)$/;

/**
 * VM processes of this host whose command line names something below `folder`. A program that only looks at files there
 * (an editor, `tail`) is none.
 */
export async function findVmProcesses(folder: string): Promise<ProcessIdentity[]> {
  const found: ProcessIdentity[] = [];
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    // Identity first: if the pid changes hands after it, the start time does not match and nothing is killed.
    const identity = await identify(Number(name));
    if (identity !== undefined && (await isVmOf(identity.pid, folder))) found.push(identity);
  }
  return found;
}

async function isVmOf(pid: number, folder: string): Promise<boolean> {
  const argv = await commandLine(pid);
  return VMM.test(basename(argv[0] ?? '')) && argv.some((argument) => argument.includes(`${folder}/`));
}

/** proc_pid_cmdline(5); empty for kernel threads and for processes that are gone. */
async function commandLine(pid: number): Promise<string[]> {
  try {
    return (await readFile(`/proc/${pid}/cmdline`, 'utf8')).split('\0');
  } catch {
    return [];
  }
}
