import {
  closeSync,
  ftruncateSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { GUEST_LINK } from '@aenv/contracts/guest/link.ts';

export interface Identity {
  readonly hostname: string;
  readonly sandboxId: string;
  readonly templateId: string | undefined;
  /** 32 hexadecimal digits (machine-id(5)); undefined leaves it as it is */
  readonly machineId?: string | undefined;
}

/** Where the files are that say who this guest is. */
export interface IdentityPaths {
  readonly etc: string;
  readonly run: string;
  /** D-Bus's folder with a copy of the machine's id, in images from before it was a link */
  readonly dbus: string;
  /** the kernel's host name */
  readonly kernelHostname: string;
}

const GUEST_PATHS: IdentityPaths = {
  etc: '/etc',
  run: '/run/e2b',
  dbus: '/var/lib/dbus',
  kernelHostname: '/proc/sys/kernel/hostname',
};

// hostname(7): 64 bytes at most, and what a resolver may look up.
const HOSTNAME_MAX = 63;

/**
 * Gives the guest its name, its resolver and the files by which programs see that they are in a sandbox. Works on a root
 * file system without /etc. What is as it should be is not written. One part that fails does not keep the others from
 * being done. All in one go: nothing else of envd has anything to do before, and each turn through the pool of threads
 * takes an emulated guest longer than such a file.
 * @throws AggregateError with all that failed
 */
export function applyIdentity(identity: Identity, paths: IdentityPaths = GUEST_PATHS): void {
  const hostname = sanitizeHostname(identity.hostname);
  const { machineId } = identity;
  const errors: unknown[] = [];
  const attempt = (part: () => void) => {
    try {
      part();
    } catch (error) {
      errors.push(error);
    }
  };
  attempt(() => mkdirSync(paths.etc, { recursive: true }));
  attempt(() => mkdirSync(paths.run, { recursive: true }));
  attempt(() => writeFileSync(paths.kernelHostname, hostname));
  attempt(() => provideFile(join(paths.etc, 'hostname'), `${hostname}\n`));
  attempt(() => updateHosts(join(paths.etc, 'hosts'), hostname));
  attempt(() => provideFile(join(paths.etc, 'resolv.conf'), `nameserver ${GUEST_LINK.gateway}\n`));
  if (machineId !== undefined) {
    attempt(() => provideFile(join(paths.etc, 'machine-id'), `${machineId}\n`));
    const copy = join(paths.dbus, 'machine-id');
    attempt(() => isFile(copy) && provideFile(copy, `${machineId}\n`));
  }
  attempt(() => provideFile(join(paths.run, '.E2B_SANDBOX'), 'true'));
  attempt(() => provideFile(join(paths.run, '.E2B_SANDBOX_ID'), identity.sandboxId));
  attempt(() => provideFile(join(paths.run, '.E2B_TEMPLATE_ID'), identity.templateId ?? ''));
  if (errors.length > 0) throw new AggregateError(errors, 'the identity was not set completely');
}

const REHEARSAL = '/run/aenv/rehearsal';
const REHEARSALS = 4;

/** Names a guest of which there is only a folder, so that the engine has this code ready when there is a real one. */
export function rehearseIdentity(root = REHEARSAL): void {
  const paths = { etc: join(root, 'etc'), run: join(root, 'run'), dbus: root, kernelHostname: join(root, 'hostname') };
  try {
    for (let round = 0; round < REHEARSALS; round++) {
      const hostname = `i${round}`;
      applyIdentity({ hostname, sandboxId: hostname, templateId: hostname, machineId: '0'.repeat(32) }, paths);
    }
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

function sanitizeHostname(name: string): string {
  const clean = name.replace(/[^A-Za-z0-9.-]/g, '-').replace(/^[.-]+/, '');
  return clean.slice(0, HOSTNAME_MAX).replace(/[.-]+$/, '') || 'sandbox';
}

function isFile(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isFile() === true;
}

/**
 * A file with this content, and not what a symbolic link in its place points to: images link resolv.conf to services
 * they lack.
 */
function provideFile(path: string, text: string): void {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found?.isFile() === true) {
    if (found.size !== Buffer.byteLength(text) || readFileSync(path, 'utf8') !== text) {
      overwrite(path, text, found.size);
    }
    return;
  }
  if (found !== undefined) unlinkSync(path);
  writeFileSync(path, text);
}

/**
 * In its place: ext4 writes a file that is cut to nothing first to the disk at once (ext4(5), `auto_da_alloc`). A cut that
 * changes nothing is a transaction all the same.
 */
function overwrite(path: string, text: string, size: number): void {
  const file = openSync(path, 'r+');
  try {
    const written = writeSync(file, text, 0);
    if (written < size) ftruncateSync(file, written);
  } finally {
    closeSync(file);
  }
}

/** Keeps what the image has in hosts(5), and adds what is missing and the line with our name. */
function updateHosts(path: string, hostname: string): void {
  const mark = '127.0.1.1';
  const old = isFile(path) ? readFileSync(path, 'utf8') : '';
  const lines = old.split('\n').filter((line) => line !== '' && line.split(/\s+/)[0] !== mark);
  if (!lines.some((line) => /^127\.0\.0\.1\s(.*\s)?localhost(\s|$)/.test(line))) lines.unshift('127.0.0.1 localhost');
  lines.push(`${mark} ${hostname}`);
  provideFile(path, `${lines.join('\n')}\n`);
}
