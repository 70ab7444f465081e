import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';

const NAME_MAX = 255;
const DEPTH_MAX = 1024;

/**
 * The parts of a name in an archive, relative to where it is unpacked.
 * @throws AenvError `path_invalid` for a name that leads out of there, or that no file can have
 */
export function safeParts(name: string): string[] {
  const refuse = (why: string) => new AenvError('path_invalid', `entry '${name.slice(0, 300)}' is refused: ${why}`);
  if (name.startsWith('/')) throw refuse('the name is absolute');
  if (name.includes('\0')) throw refuse('the name holds a NUL character');
  const parts = name.split('/').filter((part) => part !== '' && part !== '.');
  if (parts.includes('..')) throw refuse('the name leads out of the folder');
  if (parts.length > DEPTH_MAX) throw refuse('the name has too many parts');
  if (parts.some((part) => Buffer.byteLength(part) > NAME_MAX)) throw refuse('a part of the name is too long');
  return parts;
}
