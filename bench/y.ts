import { openDaemon } from './sandboxes/daemon.ts';
import { createSandbox } from './sandboxes/sandbox.ts';
import { guestMarks } from './boot/guest-marks.ts';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
await using daemon = await openDaemon();
const n = Number(process.argv[2] ?? 4);
for (let i = 0; i < n; i++) {
  const u0 = process.cpuUsage();
  await using s = await createSandbox(daemon);
  const m = await guestMarks(daemon, s.id);
  console.log(JSON.stringify(s.phases), JSON.stringify(m));
  if (i === 0) { const f = join(daemon.home, 'logs', 'serial'); for (const x of await readdir(f)) if (x.startsWith(s.id)) console.log(await readFile(join(f, x), 'utf8')); }
}
