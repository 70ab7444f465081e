/**
 * A program for a process of its own, in a mount namespace where /etc/hosts is a file of its own: uses the published SDK
 * with E2B_DOMAIN, E2B_API_KEY and NODE_EXTRA_CA_CERTS alone and prints what it saw as JSON.
 */
import { appendFile } from 'node:fs/promises';
import { run } from '@aenv/platform/process/run.ts';
import { Sandbox, TimeoutError } from 'e2b';

const domain = process.env.E2B_DOMAIN ?? '';
const name = domain.replace(/:\d+$/, '');
const hosts = process.argv[2] ?? '';
await run(['mount', '--bind', hosts, '/etc/hosts']);
// A hosts file knows no wildcards, so names of the sandbox are added when it has one.
await appendFile(hosts, `127.0.0.1 api.${name}\n`);

const sandbox = await Sandbox.create('base', { timeoutMs: 300_000, requestTimeoutMs: 180_000 });
const web = sandbox.getHost(8080);
await appendFile(hosts, `127.0.0.1 49983-${sandbox.sandboxId}.${name} ${web.replace(/:\d+$/, '')}\n`);
try {
  const command = await sandbox.commands.run('echo over; echo TLS >&2');
  await sandbox.files.write('/home/user/a.txt', 'content');
  const content = await sandbox.files.read('/home/user/a.txt');
  // Opened by whoever has the URL, without any header of the SDK.
  const downloaded = await (await fetch(await sandbox.downloadUrl('/home/user/a.txt'))).text();
  const big = 'x'.repeat(8 * 1024 * 1024);
  await sandbox.files.write('/home/user/big.txt', big);
  const bigIsEqual = (await sandbox.files.read('/home/user/big.txt')) === big;
  await sandbox.commands.run('python3 -m http.server 8080', { background: true, timeoutMs: 0 });
  const served = await untilServed(`https://${web}/a.txt`);
  const info = await Sandbox.getInfo(sandbox.sandboxId);
  const { stdout, stderr } = command;
  console.log(JSON.stringify({ web, stdout, stderr, content, downloaded, bigIsEqual, served, state: info.state }));
  const waiting = await sandbox.commands.run('echo begun; sleep 300', { background: true, timeoutMs: 0 });
  const cut = waiting.wait().catch((error: unknown) => error);
  await sandbox.kill();
  const error = await cut;
  const told = error instanceof TimeoutError ? error.message : String(error);
  console.log(JSON.stringify({ running: await sandbox.isRunning(), told }));
} finally {
  await sandbox.kill();
}

async function untilServed(url: string): Promise<string> {
  for (let attempt = 0; ; attempt++) {
    const answer = await fetch(url);
    const text = await answer.text();
    if (answer.ok || attempt === 20) return text;
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}
