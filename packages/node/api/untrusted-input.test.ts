import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import fc from 'fast-check';
import { decodePageToken, encodePageToken } from '../store/page-token.ts';
import { readJson } from './http/read-json.ts';
import { metadataFilter } from './query/metadata-filter.ts';
import { startedAfter } from './query/moment.ts';
import { sandboxIdOf } from './query/sandbox-id.ts';

/** Runs a parser on anything: it gives a value or refuses with 400, and never fails otherwise. */
const holds = (parse: (text: string) => unknown) =>
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.string({ unit: 'binary', maxLength: 500 })), (text) => {
      try {
        parse(text);
      } catch (error) {
        assert.ok(error instanceof AenvError && error.status === 400, String(error));
      }
    }),
  );
const wellFormed = fc.string({ unit: 'grapheme' }).filter((text) => text.isWellFormed());

describe('parsers of what clients send', () => {
  it('refuse or understand any text', () => {
    holds(metadataFilter);
    holds(startedAfter);
    holds((text) => decodePageToken(text, 'asc'));
    holds((text) => assert.match(sandboxIdOf(text), /^[a-z0-9]{1,64}$/));
  });

  it('read back what a client encodes', () => {
    fc.assert(
      fc.property(fc.dictionary(wellFormed, wellFormed), (metadata) => {
        const encoded = Object.entries(metadata).map(([name, value]): [string, string] => [
          encodeURIComponent(name),
          encodeURIComponent(value),
        ]);
        const value = new URLSearchParams(encoded).toString();
        assert.deepEqual({ ...metadataFilter(value) }, { ...metadata });
      }),
    );
    fc.assert(
      fc.property(fc.date({ min: new Date(0), max: new Date('9999-12-31'), noInvalidDate: true }), (at) => {
        const cursor = { at, id: 'i1' };
        assert.deepEqual(decodePageToken(encodePageToken(cursor, 'desc'), 'desc'), cursor);
        assert.deepEqual(startedAfter(at.toISOString()), at);
      }),
    );
  });

  it('read the same JSON however it is cut into chunks', async () => {
    await fc.assert(
      fc.asyncProperty(fc.jsonValue(), fc.array(fc.nat(40), { maxLength: 8 }), async (value, cuts) => {
        const bytes = Buffer.from(JSON.stringify(value));
        async function* pieces() {
          let rest = bytes;
          for (const cut of cuts) {
            yield rest.subarray(0, cut);
            rest = rest.subarray(cut);
          }
          yield rest;
        }
        try {
          assert.deepEqual(await readJson(pieces(), new Headers(), 1_000_000), JSON.parse(bytes.toString()));
        } catch (error) {
          assert.ok(error instanceof AenvError && bytes.includes('__proto__'), String(error));
        }
      }),
    );
  });

  it('stop reading at the limit', async () => {
    let sent = 0;
    async function* endless() {
      for (;;) {
        sent += 1000;
        yield new Uint8Array(1000);
      }
    }
    await assert.rejects(
      readJson(endless(), new Headers(), 10_000),
      (error: unknown) => error instanceof AenvError && error.status === 413,
    );
    assert.equal(sent, 11_000);
  });
});
