const RESUME = '/etc/aenv/on-resume.d';

export interface HookFile {
  readonly path: string;
  readonly text: string;
}

/** Hooks that write down that they ran; one fails, and the one for forks has a program reseed. */
export const HOOK_FILES: readonly HookFile[] = [
  { path: `${RESUME}/10-first`, text: script('echo "first $AENV_EVENT $AENV_SANDBOX_ID" >> /run/hooks; echo said') },
  { path: `${RESUME}/20-fails`, text: script('echo why >&2; exit 3') },
  { path: `${RESUME}/30-last`, text: script('echo "last $AENV_EVENT" >> /run/hooks') },
  {
    path: '/etc/aenv/on-fork.d/10-reseed',
    text: script('kill -USR1 "$(sed "s/.*\\"pid\\": \\([0-9]*\\).*/\\1/" /run/witness)"'),
  },
];

/** One that does not end by itself. */
export const HANGING_HOOK: HookFile = { path: `${RESUME}/40-hangs`, text: script('sleep 1000') };

const ENDS = [
  /^info: hook 10-first ended after \d+ ms: exit status 0$/,
  /^error: hook 20-fails ended after \d+ ms: exit status 3$/,
  /^info: hook 30-last ended after \d+ ms: exit status 0$/,
];
const HANGING_END = /^error: hook 40-hangs ended after \d+ ms: killed after \d+ ms, when time was over$/;

/** What is not as it should be in the log of a sandbox that was resumed. */
export function hookLogProblem(entries: readonly string[], withHanging: boolean): string | undefined {
  const hooks = entries.filter((entry) => /^\w+: hook /.test(entry));
  const missing = [...ENDS, ...(withHanging ? [HANGING_END] : [])].find((line, at) => !line.test(hooks[at] ?? ''));
  return missing === undefined ? undefined : `no ${missing} in its place in: ${hooks.join(' | ')}`;
}

function script(line: string): string {
  return `#!/bin/sh\n${line}\n`;
}
