import assert from 'node:assert/strict';
import test from 'node:test';
import { policyScript, slotRuleset } from './ruleset.ts';

const script = slotRuleset({
  slotAddress: '10.200.0.6',
  dnsAddress: '10.200.0.1',
  dnsPort: 5353,
  deniedCidrs: ['10.0.0.0/8', '192.168.0.0/16'],
});

/** The rules of a chain, as the second block has them. */
function rulesOf(chain: string): readonly string[] {
  const blocks = [...script.matchAll(new RegExp(`chain ${chain} \\{\\n([^]*?)^ {2}\\}$`, 'gm'))];
  return (blocks.at(-1)?.[1] ?? '')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

test('the static denials come before the policy, and the policy starts closed', () => {
  const rules = rulesOf('guest_flow');
  const denial = rules.findIndex((rule) => rule.includes('@denied'));
  assert.ok(denial >= 0 && denial < rules.indexOf('goto egress'));
  assert.deepEqual(rulesOf('egress'), ['goto refuse']);
  assert.match(script, /elements = \{ 10\.0\.0\.0\/8, 192\.168\.0\.0\/16 \}/);
});

test('no rule lets a flow of the guest pass for being established', () => {
  assert.doesNotMatch(script, /established/);
  assert.match(script, /hook forward priority filter; policy drop;/);
});

test('names go to the forwarder under the port that it got', () => {
  assert.ok(rulesOf('nat_in').some((rule) => rule.endsWith('th dport 53 dnat ip to 10.200.0.1:5353')));
});

test('a policy replaces the rules of one chain and touches no other', () => {
  for (const internet of [true, false]) {
    const text = policyScript({ internet });
    assert.deepEqual(
      [...text.matchAll(/chain(?: inet aenv)? (\w+)/g)].map((match) => match[1]),
      ['egress', 'egress', 'egress'],
    );
    assert.match(text, internet ? /\n {4}accept\n/ : /\n {4}goto refuse\n/);
  }
});
