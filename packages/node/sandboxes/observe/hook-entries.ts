import type { HookResult } from '@aenv/contracts/envd/restore-api.ts';
import type { NewEntry } from './event-log.ts';

/** What a hook has said and how it ended, line by line, as entries of its sandbox's log. */
export function entriesOfHook({ name, ok, status, ms, output }: HookResult, at: number): NewEntry[] {
  const hook = plain(name);
  const how = plain(status);
  const lines = output
    .split('\n')
    .map(plain)
    .filter((line) => line !== '');
  const said: NewEntry[] = lines.map((message) => ({ at, level: 'info', logger: 'hook', message, fields: { hook } }));
  const message = `hook ${hook} ended after ${ms} ms: ${how}`;
  return [...said, { at, level: ok ? 'info' : 'error', logger: 'hook', message, fields: { hook, status: how } }];
}

/** It comes from a guest, and a log is read on terminals. */
function plain(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, '');
}
