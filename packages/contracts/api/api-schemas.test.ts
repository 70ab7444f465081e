import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NewSandbox, NewSandboxV2 } from './create-sandbox.ts';

const accepts = (body: object) => {
  const parsed = NewSandbox.safeParse({ templateID: 'base', ...body });
  assert.ok(parsed.success, `${JSON.stringify(body)}: ${parsed.error?.message}`);
};
const refuses = (body: object, at: string) => {
  const issue = NewSandbox.safeParse({ templateID: 'base', ...body }).error?.issues[0];
  assert.equal(issue?.path.join('.'), at, JSON.stringify(body));
  return issue;
};

describe('the body of a create request', () => {
  it('takes null for absent, and options that ask for nothing', () => {
    for (const name of ['timeout', 'metadata', 'envVars', 'secure', 'allow_internet_access', 'network', 'autoPause']) {
      accepts({ [name]: null });
    }
    accepts({ autoPause: false, autoPauseMemory: true, autoResume: { enabled: false } });
    accepts({ autoResume: {}, mcp: {}, iam: {}, volumeMounts: [] });
    accepts({ network: { allowOut: [], denyOut: null, rules: {}, egressProxy: {} } });
  });

  it('refuses options that are known and not served, by name', () => {
    const cases: [object, string][] = [
      [{ network: { allowOut: ['1.1.1.1'] } }, 'network.allowOut'],
      [{ network: { denyOut: ['0.0.0.0/0'] } }, 'network.denyOut'],
      [
        { network: { rules: { 'a.test': [], 'b.test': [{}], 'c.test': [{ transform: { headers: { a: '' } } }] } } },
        'network.rules',
      ],
      [{ network: { egressProxy: { address: 'p:1' } } }, 'network.egressProxy'],
      [{ mcp: { server: {} } }, 'mcp'],
      [{ iam: { tokens: { a: { audience: 'x' } } } }, 'iam'],
      [{ volumeMounts: [{ name: 'v', path: '/v' }] }, 'volumeMounts'],
    ];
    for (const [body, at] of cases) {
      const issue = refuses(body, at);
      assert.deepEqual(issue?.code === 'custom' && issue.params, { code: 'unsupported_field' });
    }
  });

  it('bounds maps and checks names of variables', () => {
    accepts({ metadata: { '': '', 'a b': 'ü'.repeat(100) }, envVars: { _A1: 'x', b: '' } });
    refuses({ metadata: { a: 'x'.repeat(64 * 1024) } }, 'metadata');
    refuses({ metadata: { a: 1 } }, 'metadata.a');
    refuses({ envVars: { '1A': 'x' } }, 'envVars.1A');
    refuses({ envVars: { 'A=B': 'x' } }, 'envVars.A=B');
    refuses({ envVars: { A: 'a\0b' } }, 'envVars.A');
    refuses({ envVars: { A: 'ü'.repeat(64 * 1024) } }, 'envVars.A');
    const big = { A: 'x'.repeat(100_000), B: 'x'.repeat(100_000), C: 'x'.repeat(100_000) };
    refuses({ envVars: big }, 'envVars');
  });

  it('takes only hosts as a mask, since it becomes a header', () => {
    for (const host of ['localhost', `localhost:\${PORT}`, `\${PORT}.test`, 'a-b.test:80', `[::1]:\${PORT}`]) {
      accepts({ network: { maskRequestHost: host } });
    }
    for (const host of ['', 'a b', 'a\r\nx: y', 'a/b', 'u@h', 'h:port', `\${HOST}`, '-a', 'h:123456']) {
      refuses({ network: { maskRequestHost: host } }, 'network.maskRequestHost');
    }
  });

  it('cannot ask the second version for an unsecured sandbox', () => {
    assert.ok(NewSandboxV2.safeParse({ templateID: 'base', secure: true }).success);
    assert.ok(NewSandboxV2.safeParse({ templateID: 'base' }).success);
    assert.deepEqual(NewSandboxV2.safeParse({ templateID: 'base', secure: false }).error?.issues[0]?.path, ['secure']);
  });
});
