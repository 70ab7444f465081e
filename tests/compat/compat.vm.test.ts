import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { after, before, describe, test } from 'node:test';
import { cliTable } from './cli/table.ts';
import { interpreterTable } from './code-interpreter/table.ts';
import { sdkTable } from './e2b/table.ts';
import { Hosts } from './support/host.ts';
import { readKnownFailures } from './support/known-failures.ts';
import { readCell, renderPage, type TableShape, wordOf } from './support/markdown.ts';
import { Results } from './support/results.ts';
import { applies, type Table } from './support/scenario.ts';

const PAGE = 'docs/compat/e2b.md';
/**
 * Which columns run: `all`, or part of their names; what they say is then written into the page. Absent: a few, beside all
 * other tests, and the page has to say what they do.
 */
const WANTED = process.env.AENV_COMPAT ?? '';
/** A scenario that takes longer hangs. */
const LIMIT_MS = 180_000;

let hosts: Hosts;
before(async () => {
  hosts = await Hosts.open();
});
after(async () => {
  await hosts?.[Symbol.asyncDispose]();
});

const results = new Results(readKnownFailures());
const sdk = sdkTable();
const interpreter = interpreterTable();
const cli = cliTable();
const tables: readonly TableShape[] = [sdk, interpreter, cli];
// A column waits for its sandbox or its client most of the time, so two of them fill two cores.
describe('columns', { concurrency: 2 }, () => {
  runTable(sdk);
  runTable(interpreter);
  runTable(cli);
});

test('every cell was seen, and every known failure is one of them', () => {
  for (const { client, column, scenario } of cells()) {
    assert.ok(results.of({ client, column, scenario }), `${client} ${column}: ${scenario}: no answer`);
  }
  if (WANTED === 'all') assert.deepEqual(results.unmet(), []);
});

test(`${PAGE} says what was seen`, async () => {
  const before = await readFile(PAGE, 'utf8').catch(() => '');
  const page = WANTED === '' ? before : renderPage(tables, results, before);
  if (page !== before) await writeFile(PAGE, page);
  for (const { client, column, scenario } of cells()) {
    const seen = wordOf(results.of({ client, column, scenario }));
    const told = readCell(page, client, column, scenario);
    assert.equal(told, seen, `${client} ${column}: ${scenario}: run \`make compat\` and commit the page`);
  }
});

/** Whether this run is about that column. */
function chosen(client: string, { title, always = false }: TableShape['columns'][number]): boolean {
  return WANTED === 'all' || (WANTED === '' ? always : `${client} ${title}`.includes(WANTED));
}

function* cells() {
  for (const { client, groups, columns } of tables) {
    for (const column of columns.filter((one) => chosen(client, one))) {
      for (const { name } of groups.flatMap(({ scenarios }) => scenarios)) {
        yield { client, column: column.title, scenario: name };
      }
    }
  }
}

function runTable<Bed>({ client, groups, columns }: Table<Bed>): void {
  for (const { title, version, open, close } of columns.filter((column) => chosen(client, column))) {
    describe(`${client} ${title}`, { concurrency: 1 }, () => {
      let bed: Bed;
      let end = async () => {};
      before(async () => {
        const host = await hosts.take();
        end = async () => hosts.give(host);
        bed = await open(host);
        end = async () => {
          await close?.(bed);
          hosts.give(host);
        };
      });
      after(() => end());
      for (const scenario of groups.flatMap(({ scenarios }) => scenarios)) {
        const cell = { client, column: title, scenario: scenario.name };
        if (!applies(scenario, version)) results.markAbsent(cell);
        else test(scenario.name, () => results.attempt(cell, () => withinTime(scenario.run(bed))));
      }
    });
  }
}

async function withinTime(work: Promise<void>): Promise<void> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`took longer than ${LIMIT_MS / 1000} s`)), LIMIT_MS);
  try {
    await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
  }
}
