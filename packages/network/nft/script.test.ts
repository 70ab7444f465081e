import assert from 'node:assert/strict';
import test from 'node:test';
import { tableScript } from './script.ts';

test('a script declares its chains, empties them and fills them, so that it can be applied again', () => {
  const hook = 'type filter hook input priority filter; policy drop;';
  assert.equal(
    tableScript('t', { jumped_to: { rules: ['drop'] }, base: { hook, rules: ['accept', 'goto jumped_to'] } }),
    [
      'table inet t {',
      '  chain jumped_to {',
      '  }',
      '  chain base {',
      `    ${hook}`,
      '  }',
      '}',
      'flush chain inet t jumped_to',
      'flush chain inet t base',
      'table inet t {',
      '  chain jumped_to {',
      '    drop',
      '  }',
      '  chain base {',
      '    accept',
      '    goto jumped_to',
      '  }',
      '}',
      '',
    ].join('\n'),
  );
});
