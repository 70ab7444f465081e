// Stands for the daemon in tests of `up` and `down`: answers health, behaves as FAKE_DAEMON says.
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';

const behaviour = process.env.FAKE_DAEMON ?? 'good';
const runtime = process.env.AENV_RUNTIME ?? '';

if (behaviour === 'fails') {
  console.log(JSON.stringify({ level: 'info', msg: 'starting' }));
  console.log(JSON.stringify({ level: 'error', msg: 'the ledger is damaged', file: 'aenv.db' }));
  process.exit(3);
}

const server = createServer((request, response) => {
  if (request.url === '/health') response.writeHead(behaviour === 'sick' ? 500 : 204).end();
  else response.writeHead(404).end();
});
server.listen(0, '127.0.0.1', () => {
  const startTime = Number(readFileSync('/proc/self/stat', 'utf8').split(') ')[1]?.split(' ')[19]);
  mkdirSync(runtime, { recursive: true });
  const url = `http://127.0.0.1:${server.address().port}`;
  const state = { pid: process.pid, startTime, url, cwd: process.cwd(), listen: process.env.AENV_LISTEN };
  writeFileSync(`${runtime}/daemon.json.new`, JSON.stringify(state));
  renameSync(`${runtime}/daemon.json.new`, `${runtime}/daemon.json`);
  console.log(JSON.stringify({ level: 'info', msg: 'listening' }));
});
process.on('SIGTERM', () => {
  if (behaviour === 'stubborn') return;
  if (behaviour === 'busy') {
    const failures = [{ sandboxId: 'ic', reason: 'no space left' }];
    const report = { pid: process.pid, paused: ['ia', 'ib'], ended: ['ic'], failures, left: ['id'] };
    writeFileSync(`${runtime}/shutdown.json`, JSON.stringify(report));
  }
  process.exit(0);
});
