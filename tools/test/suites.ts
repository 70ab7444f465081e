import { glob } from 'node:fs/promises';

export interface Suite {
  readonly name: string;
  readonly files: readonly string[];
  /** processes of tests at once */
  readonly concurrency: number;
  /** whether each of these processes runs many of the files, instead of a process for each file */
  readonly shareProcesses: boolean;
  /** whether this suite is expected to boot virtual machines */
  readonly bootsVms: boolean;
  /** a test file may take so many ms */
  readonly timeoutMs: number;
  /** added to the environment of its processes */
  readonly env?: Readonly<Record<string, string>>;
  /** options of Node for them */
  readonly execArgv?: readonly string[];
}

const isVm = (file: string) => file.endsWith('.vm.test.ts');
const E2E = 'tests/e2e/';
/** They measure times, memory or the page cache, or start many machines at once. */
const MEASURING = /\/(disks|leaks|observability)\.vm\.test\.ts$/;
const COMPAT = 'tests/compat/';
const SOAK = process.env.AENV_SOAK === '1';
const E2E_MS = SOAK ? 3_600_000 : 1_200_000;
/**
 * What takes long begins first, so that it does not go on alone at the end. Parts of names; what is not here takes what most
 * take.
 */
const LONG = [
  ...['client/restarts', 'repository/crash', 'code-interpreter/server', 'node/sandboxes/faults', 'edit/disk-files'],
  ...['images/pull/pull-image', 'lazy/served-on-demand', 'client/remote-layers', 'convert/convert', 'tests/house'],
  ...['convert/same-tree', 'vmm/restart', 'vmm/contract.vm'],
  ...['e2e/large-files', 'e2e/code-interpreter', 'e2e/snapshots', 'e2e/cold-start', 'e2e/any-rootfs', 'e2e/fork'],
  ...['e2e/restore-contract', 'e2e/processes', 'e2e/faults.vm', 'e2e/pause', 'e2e/crash', 'e2e/sdk'],
];
/**
 * A program is started by a copy of the process that starts it, which takes tens of ms where that has much memory, and a
 * process that runs many files gives none back. So files that start many programs come before those.
 */
const STARTING = [
  ...['packages/envd/process', 'packages/envd', 'vmm/qemu', 'node/front-door', 'node/certificates', 'node/host'],
  ...['packages/guest', 'images/ext4'],
];
const ORDER = [...STARTING, ...LONG];
/** A process that ends with all that it has started is worse than one that takes long on a busy machine. */
const FAST_MS = SOAK ? 600_000 : 120_000;
/**
 * Buffers of megabytes come and go here, and the allocator gives each of them back to the kernel, which hands the next one
 * out page by page: half of the processor time where the machine is itself a virtual one. Let it keep them, in large pages.
 */
const KEEPS_MEMORY = {
  GLIBC_TUNABLES:
    'glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=1073741824:glibc.malloc.trim_threshold=4294967296',
};
/**
 * Buffers count against the limit of a small heap, and each few MiB of them led to a collection of all of it: half of the
 * processor time of what handles much data. So they count against one limit with the heap, which grows with both.
 */
const COLLECTS_RARELY = ['--external-memory-accounted-in-global-limit', '--min-semi-space-size=16'];
const ALONE = { concurrency: 1, shareProcesses: false };

/**
 * The suites in the order in which they run. Those that boot virtual machines run one file at a time, or two where that
 * disturbs no measurement: a machine under emulation fills a core, but not always.
 * @param wanted names of suites, or paths of test files, to run instead of everything
 */
export async function findSuites(wanted: readonly string[]): Promise<Suite[]> {
  const files: string[] = [];
  for await (const file of glob(['packages/**/*.test.ts', 'tests/**/*.test.ts'], {
    exclude: (name) => name === 'node_modules',
  })) {
    files.push(file);
  }
  files.sort((one, other) => rank(one) - rank(other) || (one < other ? -1 : 1));
  const all: Suite[] = [
    suite(
      'fast',
      files.filter((file) => !isVm(file)),
      {
        ...{ concurrency: 4, shareProcesses: true, bootsVms: false, timeoutMs: FAST_MS },
        ...{ env: KEEPS_MEMORY, execArgv: COLLECTS_RARELY },
      },
    ),
    suite(
      'host and rooms',
      files.filter((file) => isVm(file) && !file.startsWith(E2E) && !file.startsWith(COMPAT)),
      { concurrency: 2, shareProcesses: false, bootsVms: true, timeoutMs: 600_000 },
    ),
    suite(
      'end to end',
      files.filter((file) => isVm(file) && file.startsWith(E2E) && !MEASURING.test(file)),
      { concurrency: 2, shareProcesses: false, bootsVms: true, timeoutMs: E2E_MS },
    ),
    suite(
      'end to end, alone',
      files.filter((file) => isVm(file) && file.startsWith(E2E) && MEASURING.test(file)),
      { ...ALONE, bootsVms: true, timeoutMs: E2E_MS },
    ),
    suite(
      'compatibility',
      files.filter((file) => isVm(file) && file.startsWith(COMPAT)),
      { ...ALONE, bootsVms: true, timeoutMs: 1_800_000 },
    ),
  ];
  // Published clients take a quarter of an hour: `make compat` asks for them by name.
  if (wanted.length === 0) return all.filter(({ name }) => name !== 'compatibility');
  const named = all.filter((candidate) => wanted.includes(candidate.name));
  const paths = wanted.filter((word) => word.endsWith('.test.ts'));
  if (paths.length > 0) {
    named.push(suite('chosen files', paths, { ...ALONE, bootsVms: paths.some(isVm), timeoutMs: 3_600_000 }));
  }
  if (named.length === 0) throw new Error(`no suite of that name; there are: ${all.map((s) => s.name).join(', ')}`);
  return named;
}

function rank(file: string): number {
  const at = ORDER.findIndex((part) => file.includes(part));
  return at < 0 ? ORDER.length : at;
}

function suite(name: string, files: readonly string[], rest: Omit<Suite, 'name' | 'files'>): Suite {
  return { name, files, ...rest };
}
