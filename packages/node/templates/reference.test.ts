import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import fc from 'fast-check';
import { parseTemplateReference } from './reference.ts';

test('takes ids, aliases, namespaces and tags; case and outer blanks do not matter', () => {
  assert.deepEqual(parseTemplateReference('base'), {
    ...{ name: 'base', tag: 'default', isTagged: false, shown: 'base' },
  });
  assert.deepEqual(parseTemplateReference(' Base:V1.2 '), {
    ...{ name: 'base', tag: 'v1.2', isTagged: true, shown: 'base' },
  });
  assert.deepEqual(parseTemplateReference('team/my-name_1:default'), {
    namespace: 'team',
    name: 'my-name_1',
    tag: 'default',
    isTagged: true,
    shown: 'team/my-name_1',
  });
});

const BAD = [
  '',
  '  ',
  ':',
  'x:',
  ':x',
  'a/b/c',
  '/x',
  'x/',
  'a b',
  'x:a:b',
  'x:0c8f31a5-5d1c-4f0e-9d0e-2f6f0a4ce7a1',
  '../x',
  'ä',
  'x'.repeat(300),
];
for (const text of BAD) {
  test(`refuses ${JSON.stringify(text.slice(0, 50))}`, () => {
    assert.throws(
      () => parseTemplateReference(text),
      (error) => error instanceof AenvError && error.code === 'invalid_request',
    );
  });
}

test('any text is parsed or refused, and what is parsed has clean parts', () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 400 }), (text) => {
      try {
        const reference = parseTemplateReference(text);
        assert.match(reference.name, /^[a-z0-9_-]+$/);
        assert.match(reference.tag, /^[a-z0-9_.-]+$/);
      } catch (error) {
        assert.ok(error instanceof AenvError);
      }
    }),
  );
});
