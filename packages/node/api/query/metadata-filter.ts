import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';

/**
 * The pairs of a `metadata` query. Clients encode three times: names and values as URI components, the pairs as a form
 * string, and that as a query value. The last layer is already undone here.
 * @throws AenvError `invalid_request`
 */
export function metadataFilter(value: string | undefined): Readonly<Record<string, string>> | undefined {
  if (value === undefined || value === '') return undefined;
  const pairs: [string, string][] = [];
  for (const [name, content] of new URLSearchParams(value)) pairs.push([decode(name), decode(content)]);
  return Object.fromEntries(pairs);
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    throw new AenvError('invalid_request', 'query.metadata: broken percent-encoding', { cause: error });
  }
}
