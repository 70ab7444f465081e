import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';

/** A template reference taken apart: `[namespace/]name[:tag]`, `name` being an id or an alias. */
export interface TemplateReference {
  readonly namespace?: string;
  readonly name: string;
  readonly tag: string;
  /** whether it was given a tag */
  readonly isTagged: boolean;
  /** the reference without its tag, as messages show it */
  readonly shown: string;
}

export const DEFAULT_TAG = 'default';

const MAX_LENGTH = 256;
const MAX_TAG = 128;
const NAME = /^[a-z0-9_-]+$/;
const TAG = /^[a-z0-9_.-]+$/;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * Parses what a client sent; case and outer blanks do not matter.
 * @throws AenvError `invalid_request`
 */
export function parseTemplateReference(text: string): TemplateReference {
  const reference = text.trim().toLowerCase();
  const bad = (why: string) =>
    new AenvError('invalid_request', `bad template reference '${text.slice(0, MAX_LENGTH)}': ${why}`, {
      remediation: 'Use an id, an alias or namespace/alias, with :tag where needed.',
    });
  if (reference === '') throw bad('it is empty');
  if (reference.length > MAX_LENGTH) throw bad(`longer than ${MAX_LENGTH} characters`);

  const colon = reference.indexOf(':');
  const shown = colon < 0 ? reference : reference.slice(0, colon);
  const tag = colon < 0 ? DEFAULT_TAG : reference.slice(colon + 1);
  const fault = faultOfTag(tag);
  if (fault !== undefined) throw bad(fault);

  const [first = '', second, ...more] = shown.split('/');
  const parts = second === undefined ? [first] : [first, second];
  if (more.length > 0 || !parts.every((part) => NAME.test(part))) {
    throw bad('namespace and name consist of a-z, 0-9, - and _');
  }
  const rest = { tag, isTagged: colon >= 0, shown };
  return second === undefined ? { name: first, ...rest } : { namespace: first, name: second, ...rest };
}

/** A tag as a client sent it; case and outer blanks do not matter. @throws AenvError `invalid_request` */
export function parseTag(text: string): string {
  const tag = text.trim().toLowerCase();
  const fault = faultOfTag(tag);
  if (fault === undefined) return tag;
  throw new AenvError('invalid_request', `bad tag '${text.slice(0, MAX_LENGTH)}': ${fault}`);
}

function faultOfTag(tag: string): string | undefined {
  if (tag.length > MAX_TAG) return `a tag has at most ${MAX_TAG} characters`;
  if (!TAG.test(tag)) return 'a tag consists of a-z, 0-9, -, _ and .';
  return UUID.test(tag) ? 'a tag is no UUID' : undefined;
}
