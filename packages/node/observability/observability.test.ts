import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { createLogger, createLoggerOn } from './logger.ts';
import { createMetrics } from './prometheus.ts';
import { redact } from './redact.ts';

const KEY = `e2b_${'0a'.repeat(32)}`;

describe('the logger', () => {
  const capture = (level: 'debug' | 'info' = 'debug') => {
    const lines: string[] = [];
    return { log: createLoggerOn({ write: (line: string) => lines.push(line) }, level), lines };
  };

  it('writes one JSON object a line, with the fields of its children', () => {
    const { log, lines } = capture();
    log.child({ sandboxId: 'i1' }).warn('two\nlines', { count: 2 });
    assert.equal(lines.length, 1);
    assert.equal(lines[0]?.indexOf('\n'), (lines[0]?.length ?? 0) - 1);
    const { time, ...line } = JSON.parse(lines[0] ?? '');
    assert.deepEqual(line, { level: 'warn', sandboxId: 'i1', count: 2, msg: 'two\nlines' });
    assert.ok(Math.abs(Date.parse(time) - Date.now()) < 10_000);
  });

  it('leaves out what is below its level', () => {
    const { log, lines } = capture('info');
    log.debug('no');
    log.info('yes');
    assert.equal(lines.length, 1);
  });

  it('shows no secret, by name or by look, at any depth', () => {
    const { log, lines } = capture();
    const secret = 'canary-4711';
    const fields = {
      envdAccessToken: secret,
      nested: [{ hostSecret: secret, headers: { 'X-API-Key': secret, Authorization: secret } }],
      envVars: { A: secret },
      error: new Error(`bad key ${KEY}`, { cause: new AenvError('internal', KEY) }),
      text: `curl -H X-API-Key:${KEY}`,
    };
    log.child({ apiKey: secret }).error(`failed with ${KEY}`, fields);
    assert.ok(!lines[0]?.includes(secret));
    assert.ok(!lines[0]?.includes('0a0a'));
    const line = JSON.parse(lines[0] ?? '');
    assert.equal(line.error.cause.code, 'internal');
    assert.match(line.error.stack, /observability\.test/);
  });

  it('survives cycles, big values and odd types', () => {
    const cycle: Record<string, unknown> = { big: 'x'.repeat(1e6), n: 1n, bytes: new Uint8Array(9) };
    cycle.self = cycle;
    const text = JSON.stringify(redact(cycle));
    assert.ok(text.length < 200_000);
    assert.match(text, /9 bytes/);
  });

  it('appends to a file that only its owner reads', () => {
    const folder = mkdtempSync(join(tmpdir(), 'aenv-log-'));
    try {
      const file = join(folder, 'logs', 'aenv.log');
      createLogger({ level: 'info', file }).info('first');
      createLogger({ level: 'info', file }).info('second');
      const messages = readFileSync(file, 'utf8').trim().split('\n');
      assert.deepEqual(
        messages.map((line) => JSON.parse(line).msg),
        ['first', 'second'],
      );
      assert.equal(statSync(file).mode & 0o777, 0o600);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

describe('metrics', () => {
  it('render in the Prometheus text format and drop removed series', async () => {
    const metrics = createMetrics({ process: false });
    metrics.counter('aenv_test_total', 'Tests.', ['kind']).add(2, { kind: 'a' });
    metrics.counter('aenv_test_total', 'Tests.', ['kind']).add(1, { kind: 'a' });
    const gauge = metrics.gauge('aenv_level', 'Level.', ['id']);
    gauge.set(4, { id: 'one' });
    gauge.set(5, { id: 'two' });
    gauge.remove({ id: 'one' });
    metrics.histogram('aenv_seconds', 'Time.', [0.1, 1]).observe(0.5);
    const text = await metrics.render();
    assert.match(text, /aenv_test_total\{kind="a"\} 3/);
    assert.match(text, /aenv_level\{id="two"\} 5/);
    assert.doesNotMatch(text, /id="one"/);
    assert.match(text, /aenv_seconds_bucket\{le="1"\} 1/);
    assert.match(metrics.contentType, /^text\/plain/);
  });

  it('include those of the process when asked', async () => {
    assert.match(await createMetrics().render(), /process_resident_memory_bytes \d+/);
  });
});
