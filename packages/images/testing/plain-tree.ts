import type { TestMember } from './tar.ts';

/** What a path of the plain model is; hard links share one object. */
export interface PlainFile {
  readonly flag: string;
  readonly data: string;
  readonly mode: number;
  readonly uid: number;
  readonly mtime: number;
}

/**
 * The rules of layers once more, as plainly as can be: a map of paths. It follows no links, so members below one are not
 * for it.
 */
export class PlainTree {
  readonly files = new Map<string, PlainFile>();

  /** @param members that cannot be applied are left out */
  apply(members: readonly TestMember[]): TestMember[] {
    /** what this layer has, with all folders above */
    const own = new Set<string>();
    return members.filter((member) => this.#member(member, own));
  }

  #member(member: TestMember, own: Set<string>): boolean {
    const path = member.name.replace(/\/$/, '');
    const at = path.lastIndexOf('/');
    const [parent, name] = [path.slice(0, Math.max(0, at)), path.slice(at + 1)];
    if (name === '.wh..wh..opq') return this.#remove((other) => other.startsWith(`${parent}/`) && !own.has(other));
    if (name.startsWith('.wh.')) {
      const target = parent === '' ? name.slice(4) : `${parent}/${name.slice(4)}`;
      return this.#remove((other) => (other === target || other.startsWith(`${target}/`)) && !own.has(other));
    }
    const flag = member.flag ?? (member.name.endsWith('/') ? '5' : '0');
    const source = this.files.get(member.linkName ?? '');
    const link = member.linkName ?? '';
    // What makes room for the link must not be what it points to, or a folder above that.
    const isOwnPlace = `${link}/`.startsWith(`${path}/`) || `${path}/`.startsWith(`${link}/`);
    if (flag === '1' && (source === undefined || source.flag === '5' || (isOwnPlace && link !== path))) return false;
    this.#makeParents(path, own);
    if (flag === '1' && link === path) {
      own.add(path);
      return true;
    }
    if (flag !== '5' || this.files.get(path)?.flag !== '5') {
      this.#remove((other) => other === path || other.startsWith(`${path}/`));
    }
    const file = { flag, data: String(member.data ?? member.linkName ?? ''), ...attributesOf(member) };
    this.files.set(path, flag === '1' && source !== undefined ? source : file);
    own.add(path);
    return true;
  }

  #makeParents(path: string, own: Set<string>): void {
    for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', at + 1)) {
      const folder = path.slice(0, at);
      if (this.files.get(folder)?.flag !== '5') {
        this.#remove((other) => other === folder);
        this.files.set(folder, { flag: '5', data: '', mode: 0o755, uid: 0, mtime: 0 });
      }
      own.add(folder);
    }
  }

  #remove(which: (path: string) => boolean): boolean {
    for (const path of [...this.files.keys()]) if (which(path)) this.files.delete(path);
    return true;
  }
}

function attributesOf(member: TestMember) {
  return { mode: member.mode ?? 0o644, uid: member.uid ?? 0, mtime: member.mtime ?? 1_700_000_000 };
}
