import type { Outcome, Results } from './results.ts';

/** What of a table is written down. */
export interface TableShape {
  readonly client: string;
  readonly intro: string;
  readonly groups: readonly { readonly title: string; readonly scenarios: readonly { readonly name: string }[] }[];
  readonly columns: readonly { readonly title: string; readonly always?: boolean }[];
}

const INTRO = `# E2B clients against AgentENV

Written by \`make compat\`; do not edit. Each cell is one scenario, run by that published client against a node that serves
HTTPS with a wildcard certificate of \`aenv cert\`; clients find it by \`E2B_DOMAIN\` alone unless the column says otherwise.

\`yes\`: works. \`-\`: this version of the client cannot do it. \`no\`: does not work, with the reason below the table. The list
of known failures may only get shorter: a run fails when something else fails, and when something on the list works.
`;

/** The page of all tables. A cell that the run did not see says what it said in the page before. */
export function renderPage(tables: readonly TableShape[], results: Results, before: string): string {
  return `${[INTRO, ...tables.map((table) => renderTable(table, results, before))].join('\n')}`;
}

function renderTable({ client, intro, groups, columns }: TableShape, results: Results, before: string): string {
  const reasons: string[] = [];
  const cell = (column: string, scenario: string): string => {
    const outcome = results.expected({ client, column, scenario });
    if (outcome === undefined) return readCell(before, client, column, scenario) ?? '';
    if (outcome.kind !== 'known') return wordOf(outcome);
    if (!reasons.includes(outcome.reason)) reasons.push(outcome.reason);
    return `${wordOf(outcome)} (${reasons.indexOf(outcome.reason) + 1})`;
  };
  const row = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  const lines = [
    row(['Scenario', ...columns.map(({ title }) => title)]),
    row(['---', ...columns.map(() => '---')]),
    ...groups.flatMap(({ title, scenarios }) => [
      row([`**${title}**`, ...columns.map(() => '')]),
      ...scenarios.map(({ name }) => row([name, ...columns.map(({ title }) => cell(title, name))])),
    ]),
  ];
  const notes = reasons.map((reason, index) => `${index + 1}. ${reason}`);
  return [`## ${client}\n`, `${intro}\n`, ...lines, ...(notes.length === 0 ? [] : ['', ...notes]), ''].join('\n');
}

/** What a page says of a cell: the word in it, without the number of a reason. */
export function readCell(page: string, client: string, column: string, scenario: string): string | undefined {
  const lines = page.split(`\n## ${client}\n`)[1]?.split('\n## ')[0]?.split('\n') ?? [];
  const rows = lines.filter((line) => line.startsWith('|')).map((line) => line.slice(2, -2).split(' | '));
  const place = rows[0]?.indexOf(column) ?? -1;
  return place < 0 ? undefined : rows.find(([name]) => name === scenario)?.[place]?.replace(/ \(\d+\)$/, '');
}

/** The word for an outcome. */
export function wordOf(outcome: Outcome | undefined): string {
  return outcome?.kind === 'known' ? 'no' : TEXT[outcome?.kind ?? 'unseen'];
}

const TEXT = { works: 'yes', fails: '**fails**', absent: '-', unseen: '' } as const;
