import { readFile, writeFile } from 'node:fs/promises';
import { errorsPage } from './errors-page.ts';

interface Page {
  readonly path: string;
  text(): Promise<string>;
}

/** Every generated page, with where its text comes from. Sources are loaded only when they are needed. */
const PAGES: readonly Page[] = [
  { path: 'docs/reference/errors.md', text: async () => errorsPage() },
  {
    path: 'docs/reference/configuration.md',
    text: async () => (await import('../../packages/node/config/generate-docs.ts')).configurationPage(),
  },
  {
    path: 'docs/reference/cli.md',
    text: async () => {
      const { cliReference } = await import('../../packages/cli/reference.ts');
      const { HOST_USAGE } = await import('../../packages/node/host/usage.ts');
      return cliReference(HOST_USAGE);
    },
  },
  {
    path: 'docs/reference/openapi.json',
    text: async () => {
      const { version } = JSON.parse(await readFile('package.json', 'utf8')) as { version: string };
      return (await import('../../packages/node/api/generate-openapi.ts')).openApiPage(version);
    },
  },
];

/** Writes all pages anew; returns the paths of those that changed. */
export async function writeReferences(): Promise<string[]> {
  const changed: string[] = [];
  for (const page of PAGES) {
    const text = await page.text();
    if (text === (await current(page.path))) continue;
    await writeFile(page.path, text);
    changed.push(page.path);
  }
  return changed;
}

/** Says which pages differ from what their sources give, or undefined. */
export async function staleReferences(): Promise<string | undefined> {
  const stale: string[] = [];
  for (const page of PAGES) if ((await page.text()) !== (await current(page.path))) stale.push(page.path);
  return stale.length === 0 ? undefined : `not current, run make docs: ${stale.join(', ')}`;
}

async function current(path: string): Promise<string> {
  return await readFile(path, 'utf8').catch(() => '');
}
