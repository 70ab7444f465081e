import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';

const TAG = { userObject: 1, user: 2, groupObject: 4, group: 8, mask: 16, other: 32 } as const;
const NEEDED = TAG.userObject | TAG.groupObject | TAG.other;

/**
 * Turns an access control list as setxattr(2) takes it (version 2) into the form of ext4 (version 1), which leaves out
 * the ids that mean nothing.
 * @returns undefined for a list that says no more than the permission bits
 * @throws AenvError `image_invalid` for one that the kernel would refuse
 */
export function toDiskAcl(value: Buffer): Buffer | undefined {
  if (value.length < 4 || value.length % 8 !== 4 || value.readUInt32LE(0) !== 2) throw invalid();
  const parts: Buffer[] = [Buffer.from([1, 0, 0, 0])];
  let seen = 0;
  let named = false;
  let last = 0;
  for (let at = 4; at < value.length; at += 8) {
    const tag = value.readUInt16LE(at);
    const isNamed = tag === TAG.user || tag === TAG.group;
    // In order of the tags, each of the others once; a mask is due as soon as somebody is named.
    if (tag < last || (tag === last && !isNamed) || !Object.values<number>(TAG).includes(tag)) throw invalid();
    if (value.readUInt16LE(at + 2) > 7) throw invalid();
    parts.push(value.subarray(at, at + (isNamed ? 8 : 4)));
    named ||= isNamed;
    seen |= tag;
    last = tag;
  }
  if ((seen & NEEDED) !== NEEDED || (named && (seen & TAG.mask) === 0)) throw invalid();
  return named || (seen & TAG.mask) !== 0 ? Buffer.concat(parts) : undefined;
}

function invalid(): AenvError {
  return new AenvError('image_invalid', 'an access control list is damaged');
}
