import { EventType } from '@aenv/contracts/envd/gen/filesystem_pb.ts';
import { type StagingKind, stagingKind } from '../../files/staging.ts';
import { IN, type InotifyEvent } from './inotify.ts';

/** One change below the watched folder, as clients are told of it. */
export interface Change {
  /** path below the watched folder, one byte in each character; empty for the folder itself */
  readonly name: string;
  readonly type: EventType;
}

export const WATCHED =
  IN.CREATE | IN.MODIFY | IN.DELETE | IN.DELETE_SELF | IN.MOVED_FROM | IN.MOVED_TO | IN.MOVE_SELF | IN.ATTRIB;

const TYPES: readonly (readonly [mask: number, type: EventType])[] = [
  [IN.CREATE | IN.MOVED_TO, EventType.CREATE],
  [IN.MOVED_FROM | IN.MOVE_SELF, EventType.RENAME],
  [IN.ATTRIB, EventType.CHMOD],
  [IN.MODIFY, EventType.WRITE],
  [IN.DELETE | IN.DELETE_SELF, EventType.REMOVE],
];

// What an upload looks like when it is written in place, as E2B's clients know it.
const STAGED: Readonly<Record<StagingKind, readonly EventType[]>> = {
  new: [EventType.CREATE, EventType.CHMOD, EventType.WRITE],
  old: [EventType.CHMOD, EventType.WRITE],
};

// Both halves of a rename come one after the other, or nearly so.
const COOKIES_MAX = 16;

/** Tells what a client shall be told of an event: unfinished uploads are never seen, and finished ones are writes. */
export class EventTypes {
  readonly #staged = new Map<number, StagingKind>();

  of(event: InotifyEvent): readonly EventType[] {
    const kind = stagingKind(event.name);
    if (kind !== undefined) {
      if (event.mask & IN.MOVED_FROM) this.#remember(event.cookie, kind);
      return [];
    }
    const staged = event.mask & IN.MOVED_TO && !(event.mask & IN.ISDIR) ? this.#staged.get(event.cookie) : undefined;
    if (staged !== undefined) return STAGED[staged];
    return TYPES.filter(([mask]) => event.mask & mask).map(([, type]) => type);
  }

  #remember(cookie: number, kind: StagingKind): void {
    this.#staged.set(cookie, kind);
    const oldest = this.#staged.keys().next();
    if (this.#staged.size > COOKIES_MAX && oldest.done !== true) this.#staged.delete(oldest.value);
  }
}
