import { lstat, mkdir, readFile, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { GUEST_LINK } from '@aenv/contracts/guest/link.ts';

export interface Identity {
  readonly hostname: string;
  readonly sandboxId: string;
  readonly templateId: string | undefined;
}

/** Where the files are that say who this guest is. */
export interface IdentityPaths {
  readonly etc: string;
  readonly run: string;
  /** the kernel's host name */
  readonly kernelHostname: string;
}

const GUEST_PATHS: IdentityPaths = { etc: '/etc', run: '/run/e2b', kernelHostname: '/proc/sys/kernel/hostname' };

// hostname(7): 64 bytes at most, and what a resolver may look up.
const HOSTNAME_MAX = 63;

/**
 * Gives the guest its name, its resolver and the files by which programs see that they are in a sandbox. Works on a root
 * file system without /etc. One part that fails does not keep the others from being done.
 * @throws AggregateError with all that failed
 */
export async function applyIdentity(identity: Identity, paths: IdentityPaths = GUEST_PATHS): Promise<void> {
  const hostname = sanitizeHostname(identity.hostname);
  await mkdir(paths.etc, { recursive: true });
  await mkdir(paths.run, { recursive: true });
  const results = await Promise.allSettled([
    writeFile(paths.kernelHostname, hostname),
    replaceFile(join(paths.etc, 'hostname'), `${hostname}\n`),
    updateHosts(join(paths.etc, 'hosts'), hostname),
    replaceFile(join(paths.etc, 'resolv.conf'), `nameserver ${GUEST_LINK.gateway}\n`),
    replaceFile(join(paths.run, '.E2B_SANDBOX'), 'true'),
    replaceFile(join(paths.run, '.E2B_SANDBOX_ID'), identity.sandboxId),
    replaceFile(join(paths.run, '.E2B_TEMPLATE_ID'), identity.templateId ?? ''),
  ]);
  const errors = results.filter((result) => result.status === 'rejected').map((result) => result.reason);
  if (errors.length > 0) throw new AggregateError(errors, 'the identity was not set completely');
}

function sanitizeHostname(name: string): string {
  const clean = name.replace(/[^A-Za-z0-9.-]/g, '-').replace(/^[.-]+/, '');
  return clean.slice(0, HOSTNAME_MAX).replace(/[.-]+$/, '') || 'sandbox';
}

/** Writes a file, and not what a symbolic link in its place points to: images link resolv.conf to services they lack. */
async function replaceFile(path: string, text: string): Promise<void> {
  try {
    if (!(await lstat(path)).isFile()) await unlink(path);
  } catch {
    // not there yet
  }
  await writeFile(path, text);
}

/** Keeps what the image has in hosts(5), and adds what is missing and the line with our name. */
async function updateHosts(path: string, hostname: string): Promise<void> {
  const mark = '127.0.1.1';
  const old = await readFile(path, 'utf8').catch(() => '');
  const lines = old.split('\n').filter((line) => line !== '' && line.split(/\s+/)[0] !== mark);
  if (!lines.some((line) => /^127\.0\.0\.1\s(.*\s)?localhost(\s|$)/.test(line))) lines.unshift('127.0.0.1 localhost');
  lines.push(`${mark} ${hostname}`);
  await replaceFile(path, `${lines.join('\n')}\n`);
}
