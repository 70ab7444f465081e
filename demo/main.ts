/**
 * The demonstration: the published E2B SDK, unchanged, against the daemon on this machine. It uploads real records,
 * turns them into a report inside a sandbox, and reads the report back in three ways. Each step prints its time.
 */
import { readFile, stat } from 'node:fs/promises';
import { Sandbox } from 'e2b';
import { connectionOfThisHost } from './connection.ts';
import { REPORT_JOB } from './report-job.ts';
import { Steps } from './steps.ts';

const SOURCE = '/var/lib/dpkg/status';

const connection = await connectionOfThisHost();
const options = { apiUrl: connection.url, sandboxUrl: connection.url, apiKey: connection.apiKey };
const steps = new Steps();

const sandbox = await steps.run('create a sandbox (a microVM with its own kernel)', () =>
  Sandbox.create('base', { ...options, timeoutMs: 300_000, metadata: { purpose: 'demo' } }),
);
try {
  await steps.run('what runs inside', async () => {
    const { stdout } = await sandbox.commands.run('uname -sr; cat /proc/sys/kernel/random/boot_id; id; pwd');
    return stdout;
  });

  await steps.run(`upload ${SOURCE}`, async () => {
    const data = await readFile(SOURCE);
    await sandbox.files.write('status', new Blob([data]).stream());
    return `${((await stat(SOURCE)).size / 1e6).toFixed(1)} MB`;
  });

  await steps.run('run a Python job on it, output as it comes', async () => {
    await sandbox.files.write('job.py', REPORT_JOB);
    const result = await sandbox.commands.run('python3 job.py status report.md', {
      onStdout: (text) => void process.stdout.write(`      ${text.replaceAll(/\n(?=.)/g, '\n      ')}`),
    });
    return `exit code ${result.exitCode}`;
  });

  await steps.run('download the report', async () => {
    const report = await sandbox.files.read('report.md');
    return report.split('\n').slice(0, 8).join('\n');
  });

  await steps.run('serve it from the sandbox, read it through the proxy', async () => {
    await sandbox.commands.run('python3 -m http.server 8080', { background: true });
    const headers = { 'e2b-sandbox-id': sandbox.sandboxId, 'e2b-sandbox-port': '8080' };
    const answer = await fetchWhenUp(`${connection.url}/report.md`, headers);
    const text = await answer.text();
    return `HTTP ${answer.status}, ${text.length} characters; its name on a wildcard domain: ${sandbox.getHost(8080)}`;
  });

  await steps.run('a terminal (PTY)', async () => {
    const chunks: Uint8Array[] = [];
    const pty = await sandbox.pty.create({ cols: 80, rows: 24, onData: (data) => void chunks.push(data) });
    await sandbox.pty.sendInput(pty.pid, new TextEncoder().encode('stty size; tty; exit\n'));
    await pty.wait();
    return Buffer.concat(chunks).toString().replaceAll('\r', '').trim();
  });

  await steps.run('list', async () => {
    const page = await Sandbox.list({ ...options, query: { metadata: { purpose: 'demo' } } }).nextItems();
    return page
      .map((info) => `${info.sandboxId} ${info.templateId} ${info.state} ends ${info.endAt.toISOString()}`)
      .join('\n');
  });
} finally {
  await steps.run('kill', async () => ((await sandbox.kill()) ? 'gone' : 'was already gone'));
}

console.log(`
The daemon goes on at ${connection.url} (API key in ${connection.keyFile}).
  ./aenv run base -- uname -a     a command in a fresh sandbox
  ./aenv ls                       what runs
  ./aenv down                     stop the daemon`);

/** A server in a sandbox needs a moment until it listens; the proxy says 502 until then. */
async function fetchWhenUp(url: string, headers: Record<string, string>): Promise<Response> {
  for (let attempt = 1; ; attempt++) {
    const answer = await fetch(url, { headers });
    if (answer.status !== 502 || attempt === 20) return answer;
    await answer.body?.cancel();
  }
}
