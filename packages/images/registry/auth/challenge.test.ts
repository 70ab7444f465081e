import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseChallenges } from './challenge.ts';

const plain = (...values: string[]) =>
  parseChallenges(values).map(({ scheme, params }) => [scheme, Object.fromEntries(params)]);

test('challenges are read with their parameters, quoted or not', () => {
  assert.deepEqual(plain('Bearer realm="https://a/t",service="a,b",scope="repository:x:pull,push"'), [
    ['bearer', { realm: 'https://a/t', service: 'a,b', scope: 'repository:x:pull,push' }],
  ]);
  assert.deepEqual(plain('BASIC Realm = "say \\"hi\\""'), [['basic', { realm: 'say "hi"' }]]);
  assert.deepEqual(plain('Bearer realm=plain , error="insufficient_scope"'), [
    ['bearer', { realm: 'plain', error: 'insufficient_scope' }],
  ]);
});

test('several challenges come in one header or in several', () => {
  const both = [
    ['basic', { realm: 'a' }],
    ['bearer', { realm: 'b', service: 'c' }],
  ];
  assert.deepEqual(plain('Basic realm="a", Bearer realm="b", service="c"'), both);
  assert.deepEqual(plain('Basic realm="a"', 'Bearer realm="b", service="c"'), both);
  assert.deepEqual(plain('Negotiate, NTLM abcd==, Basic realm="a"'), [
    ['negotiate', {}],
    ['ntlm', {}],
    ['basic', { realm: 'a' }],
  ]);
});

test('what cannot be read ends there, and nothing is read without end', () => {
  assert.deepEqual(plain('Basic realm="a", Bearer realm="open'), [
    ['basic', { realm: 'a' }],
    ['bearer', {}],
  ]);
  assert.deepEqual(plain('="x"', '', ',,,', `Basic realm="${'x'.repeat(9000)}"`), []);
});

test('no header makes the parser throw', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (text) => {
      for (const { scheme } of parseChallenges([text])) assert.ok(scheme.length > 0);
    }),
    { numRuns: 2000, seed: 7 },
  );
});
