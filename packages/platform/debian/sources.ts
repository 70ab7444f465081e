/**
 * Reading and writing apt's source lists in both formats (sources.list(5)): one-line entries in `*.list`, deb822 stanzas
 * in `*.sources`. Only `deb` entries that are enabled are of interest.
 */
export interface SourceEntry {
  readonly uris: readonly string[];
  readonly suites: readonly string[];
  readonly components: readonly string[];
  /** the other fields in deb822 form, values verbatim: `Signed-By`, `Trusted`, `Architectures`, … */
  readonly fields: ReadonlyMap<string, string>;
}

/** One-line options and their deb822 fields; an option that is not listed has no part in fetching packages. */
const OPTION_FIELDS: ReadonlyMap<string, string> = new Map([
  ['arch', 'Architectures'],
  ['signed-by', 'Signed-By'],
  ['trusted', 'Trusted'],
  ['by-hash', 'By-Hash'],
  ['check-valid-until', 'Check-Valid-Until'],
  ['check-date', 'Check-Date'],
  ['allow-insecure', 'Allow-Insecure'],
  ['allow-weak', 'Allow-Weak'],
]);
const KEPT_FIELDS = new Map([...OPTION_FIELDS.values()].map((name) => [name.toLowerCase(), name]));

/** Entries of a file, by the ending of its name; none for names that apt ignores. */
export function parseSources(fileName: string, text: string): SourceEntry[] {
  if (fileName.endsWith('.sources')) return parseDeb822(text);
  return fileName.endsWith('.list') ? parseOneLine(text) : [];
}

function parseOneLine(text: string): SourceEntry[] {
  const entries: SourceEntry[] = [];
  for (const line of text.split('\n')) {
    const match = /^\s*deb\s+(?:\[([^\]]*)\]\s*)?(\S+)\s+(\S+)\s*(.*)$/.exec(line.replace(/#.*$/, ''));
    const [, options = '', uri, suite, components = ''] = match ?? [];
    if (uri === undefined || suite === undefined) continue;
    const fields = new Map<string, string>();
    for (const option of words(options)) {
      const [key = '', value = ''] = option.split(/[+-]?=(.*)/);
      const field = OPTION_FIELDS.get(key.toLowerCase());
      if (field !== undefined) fields.set(field, value.replaceAll(',', ' '));
    }
    entries.push({ uris: [uri], suites: [suite], components: words(components), fields });
  }
  return entries;
}

function parseDeb822(text: string): SourceEntry[] {
  return parseStanzas(text).flatMap((stanza) => {
    if (!words(stanza.get('types') ?? '').includes('deb')) return [];
    if (/^(no|false|without|off|disable|0)$/i.test(stanza.get('enabled')?.trim() ?? '')) return [];
    const fields = new Map<string, string>();
    for (const [key, name] of KEPT_FIELDS) {
      const value = stanza.get(key);
      if (value !== undefined) fields.set(name, value);
    }
    return [
      {
        uris: words(stanza.get('uris') ?? ''),
        suites: words(stanza.get('suites') ?? ''),
        components: words(stanza.get('components') ?? ''),
        fields,
      },
    ];
  });
}

/**
 * Stanzas of a deb822 text: field names in lower case, values verbatim with the leading blank of the first line taken
 * off, continuation lines (an embedded key, for example) included.
 */
export function parseStanzas(text: string): Map<string, string>[] {
  const stanzas: Map<string, string>[] = [];
  let stanza = new Map<string, string>();
  let field: string | undefined;
  const end = () => {
    if (stanza.size > 0) stanzas.push(stanza);
    stanza = new Map();
    field = undefined;
  };
  for (const line of text.split('\n')) {
    if (line.startsWith('#')) continue;
    if (line.trim() === '') end();
    else if (/^[ \t]/.test(line)) {
      if (field !== undefined) stanza.set(field, `${stanza.get(field) ?? ''}\n${line}`);
    } else {
      const colon = line.indexOf(':');
      if (colon < 1) continue;
      field = line.slice(0, colon).toLowerCase();
      stanza.set(field, line.slice(colon + 1).trim());
    }
  }
  end();
  return stanzas;
}

/** The text of a `*.sources` file that gives package lists and nothing else (no translations, no sources). */
export function formatSources(entries: readonly SourceEntry[]): string {
  return entries
    .map((entry) => {
      const lines = [
        'Types: deb',
        `URIs: ${entry.uris.join(' ')}`,
        `Suites: ${entry.suites.join(' ')}`,
        ...(entry.components.length > 0 ? [`Components: ${entry.components.join(' ')}`] : []),
        'Targets: Packages',
        ...[...entry.fields].map(([name, value]) => `${name}: ${value}`),
      ];
      return `${lines.join('\n')}\n`;
    })
    .join('\n');
}

function words(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== '');
}
