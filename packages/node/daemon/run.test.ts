import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('../main.ts', import.meta.url));

test('a bad configuration ends the start with 1 and one line that names the key and the remedy, and makes nothing', async () => {
  const home = await mkdtemp(join(tmpdir(), 'aenv-run-'));
  try {
    const env = { ...process.env, AENV_HOME: home, AENV_RUNTIME: join(home, 'run'), AENV_LISTEN: 'nowhere' };
    const child = spawn(process.execPath, [MAIN], { env, stdio: ['ignore', 'pipe', 'inherit'] });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    const [code] = await once(child, 'close');
    assert.equal(code, 1);
    const lines = output.trim().split('\n');
    assert.equal(lines.length, 1);
    const line = JSON.parse(lines[0] ?? '') as Record<string, unknown>;
    assert.equal(line.msg, 'the node did not start');
    assert.equal(line.code, 'config_invalid');
    assert.match(String(line.reason), /listen \(environment AENV_LISTEN\)/);
    assert.match(String(line.remediation), /key named in the message/);
    assert.deepEqual(await readdir(home), []);
  } finally {
    await rm(home, { recursive: true, force: true });
  }
});
