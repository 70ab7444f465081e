import assert from 'node:assert/strict';
import test from 'node:test';
import { foreignDropChains } from './check.ts';

const forward = { chain: { family: 'ip', table: 'filter', name: 'FORWARD', hook: 'forward', policy: 'drop' } };

test('a chain of another program that drops forwarded traffic is named with the command that mends it', () => {
  const [found, ...more] = foreignDropChains([forward]);
  assert.deepEqual(more, []);
  assert.equal(found?.name, 'ip filter FORWARD');
  assert.match(found?.remedy ?? '', /^nft insert rule ip filter FORWARD iifname '"ae\*"' accept; .* oifname/);
});

test('the same chain is fine once it has a rule for our links', () => {
  const rule = {
    rule: {
      family: 'ip',
      table: 'filter',
      chain: 'FORWARD',
      expr: [{ match: { op: '==', left: { meta: { key: 'iifname' } }, right: 'ae*' } }, { accept: null }],
    },
  };
  assert.deepEqual(foreignDropChains([forward, rule]), []);
  const elsewhere = { rule: { ...rule.rule, chain: 'DOCKER' } };
  assert.equal(foreignDropChains([forward, elsewhere]).length, 1);
});

test('chains that accept, or that do not see our traffic, are no problem', () => {
  const chains = [
    { chain: { ...forward.chain, policy: 'accept' } },
    { chain: { ...forward.chain, hook: 'output' } },
    { chain: { ...forward.chain, family: 'bridge' } },
    { chain: { family: 'ip', table: 'filter', name: 'DOCKER' } },
  ];
  assert.deepEqual(foreignDropChains(chains), []);
  assert.equal(foreignDropChains([{ chain: { ...forward.chain, hook: 'input', name: 'INPUT' } }])[0]?.hook, 'input');
});
