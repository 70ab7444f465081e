import type { TestMember } from './tar.ts';

export interface TortureImage {
  readonly layers: readonly (readonly TestMember[])[];
  readonly sizeBytes: number;
}

const MIB = 2 ** 20;
/** Names of the large folder: enough for a tree of many leaves. */
const MANY = process.env.AENV_SOAK === '1' ? 20_000 : 6_000;
const CAPABILITY = Buffer.from('0100000200200000000000000000000000000000', 'hex');
/** user::rwx, user:1000:r--, group::r-x, mask::r-x, other::--- */
const ACL = Buffer.from(
  '0200000001000700ffffffff02000400e803000004000500ffffffff10000500ffffffff20000000ffffffff',
  'hex',
);

const file = (name: string, data = name): TestMember => ({ name, data });
const folder = (name: string, more: Partial<TestMember> = {}): TestMember => ({ name: `${name}/`, ...more });
const symlink = (name: string, linkName: string): TestMember => ({ name, flag: '2', linkName });
const link = (name: string, linkName: string): TestMember => ({ name, flag: '1', linkName });

/** Archives leave the root's own entry out at times; here it is there, so that nothing depends on a clock. */
const ROOT: TestMember = { name: './', mode: 0o755, mtime: 1_600_000_000 };

/** Images that are hard to convert, but honest: an independent unpacker agrees about them. */
export const TORTURE: Readonly<Record<string, TortureImage>> = {
  'kinds, owners, times and names': {
    sizeBytes: 64 * MIB,
    layers: [
      [
        ROOT,
        folder('d', { mode: 0o3777, uid: 100_000, gid: 5, mtime: 1000 }),
        { name: 'd/setuid', data: 'x', mode: 0o6755, uid: 7, gid: 8 },
        { name: 'd/old', data: 'x', mtime: -86_400 },
        { name: 'd/early', data: 'x', pax: { mtime: '-2000000000.25' } },
        { name: 'd/ns', data: 'x', pax: { mtime: '1700000000.123456789' } },
        { name: 'd/late', data: 'x', pax: { mtime: '2208988800.5' } },
        { name: 'd/later', data: 'x', pax: { mtime: '7258118400.999999999' } },
        { name: 'd/far-owner', data: 'x', pax: { uid: '3000000000', gid: '2097152' } },
        { name: 'd/null', flag: '3', dev: [1, 3], mode: 0o666 },
        { name: 'd/disk', flag: '4', dev: [259, 300], mode: 0o660, gid: 6 },
        { name: 'd/fifo', flag: '6', mode: 0o622 },
        symlink('d/short', '/nowhere'),
        symlink('d/sixty', 's'.repeat(60)),
        { name: 'd/long', flag: '2', pax: { linkpath: 't'.repeat(300) } },
        ...['a b', 'new\nline', 'it\'s "x"', '-rf', 'back\\slash', 'n'.repeat(255)].map((name) => ({
          ...{ name: 'x', data: 'x', pax: { path: Buffer.from(name, 'latin1') } },
        })),
      ],
    ],
  },
  'extended attributes and access control lists': {
    sizeBytes: 64 * MIB,
    layers: [
      [
        ROOT,
        { name: 'ping', data: 'x', mode: 0o755, pax: { 'SCHILY.xattr.security.capability': CAPABILITY } },
        { name: 'note', data: 'x', pax: { 'SCHILY.xattr.user.note': 'text', 'SCHILY.xattr.user.empty': 'e' } },
        { name: 'large', data: 'x', pax: { 'SCHILY.xattr.user.large': 'v'.repeat(3500), 'SCHILY.xattr.user.b': 'b' } },
        {
          name: 'many',
          data: 'x',
          pax: Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`SCHILY.xattr.user.key${at}`, `value ${at}`])),
        },
        { name: 'list', data: 'x', mode: 0o750, pax: { 'SCHILY.xattr.system.posix_acl_access': ACL } },
        folder('shared', { mode: 0o750, pax: { 'SCHILY.xattr.system.posix_acl_default': ACL } }),
      ],
      [{ name: 'note', data: 'x', pax: { 'SCHILY.xattr.user.other': 'instead' } }],
    ],
  },
  'whiteouts, opaque folders, replacements and links across layers': {
    sizeBytes: 64 * MIB,
    layers: [
      [
        ROOT,
        ...['gone', 'kept', 'replaced', 'first', 'second', 'becomes-folder'].map((name) => file(name)),
        folder('opaque'),
        file('opaque/x'),
        folder('opaque/sub'),
        file('opaque/sub/y'),
        folder('removed'),
        file('removed/x'),
        folder('becomes-file'),
        file('becomes-file/x'),
        folder('becomes-link'),
        folder('target'),
        file('target/t'),
        link('pair', 'first'),
        folder('mode-only', { mode: 0o755 }),
        file('twice', 'one'),
        file('twice', 'two, the one that counts'),
      ],
      [
        file('.wh.gone', ''),
        folder('opaque', { mode: 0o711 }),
        file('opaque/.wh..wh..opq', ''),
        file('opaque/new'),
        file('.wh.removed', ''),
        file('replaced', 'by another content'),
        file('first', 'no longer of the pair'),
        link('second', 'kept'),
        link('third', 'pair'),
        file('becomes-file', 'a file now'),
        folder('becomes-folder'),
        file('becomes-folder/x'),
        symlink('becomes-link', 'target'),
        folder('mode-only', { mode: 0o1777, mtime: 5000 }),
      ],
      [],
      [file('becomes-link', 'and now a file'), file('third', 'alone'), folder('removed'), file('removed/again')],
    ],
  },
  'large folders and deep paths': {
    sizeBytes: 512 * MIB,
    layers: [
      [
        ROOT,
        folder('large'),
        ...Array.from({ length: MANY }, (_, at) => file(`large/a name of some length, number ${at}`, '')),
        folder('links'),
        file('links/0', 'shared'),
        ...Array.from({ length: 400 }, (_, at) => link(`links/${at + 1}`, 'links/0')),
        ...Array.from({ length: 250 }, (_, at) => ({
          ...{ name: 'x/', pax: { path: `${'deep/'.repeat(at + 1)}` }, flag: '5' },
        })),
        { name: 'x', data: 'at the bottom', pax: { path: `${'deep/'.repeat(250)}file` } },
      ],
      [
        folder('large'),
        ...Array.from({ length: MANY / 4 }, (_, at) => file(`large/.wh.a name of some length, number ${at * 3}`, '')),
        file('large/one more'),
      ],
    ],
  },
  'sparse and fragmented files': {
    sizeBytes: 256 * MIB,
    layers: [
      [
        ROOT,
        { name: 'holes', data: striped(3000) },
        { name: 'zeros', data: Buffer.alloc(3 * MIB) },
        { name: 'end', data: Buffer.concat([Buffer.alloc(5 * MIB), Buffer.from('end')]) },
        { name: 'empty', data: '' },
        { name: 'block', data: Buffer.alloc(4096, 'b') },
        { name: 'large', data: Buffer.alloc(40 * MIB, 'content of a large file, ') },
      ],
      [{ name: 'holes', data: striped(100) }],
    ],
  },
};

/** Every second block has content: as many extents as blocks. */
function striped(blocks: number): Buffer {
  const data = Buffer.alloc(2 * blocks * 4096 + 100);
  for (let at = 0; at < blocks; at++) data.fill(`block ${at} `, 2 * at * 4096, (2 * at + 1) * 4096);
  return data;
}
