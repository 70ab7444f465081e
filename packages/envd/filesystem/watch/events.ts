import { EventType, type FilesystemEventSchema } from '@aenv/contracts/envd/gen/filesystem_pb.ts';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { type EntrySources, entryInfo } from '../entry-info.ts';
import type { Change } from './changes.ts';

/** An event as it goes to clients. */
export type FilesystemEvent = MessageInitShape<typeof FilesystemEventSchema>;

/** Makes the event of a change, with what belongs to it. */
export type ToEvent = (change: Change) => FilesystemEvent | Promise<FilesystemEvent>;

// What was removed or renamed is no longer at its path; something else may be there by now.
const WITH_ENTRY: ReadonlySet<EventType> = new Set([EventType.CREATE, EventType.WRITE, EventType.CHMOD]);

/** The event of a change. Names that are not UTF-8 are shown with U+FFFD. */
export function eventOf(change: Change): FilesystemEvent {
  return { name: change.name === '' ? '.' : Buffer.from(change.name, 'latin1').toString(), type: change.type };
}

/**
 * The event of a change with what is at its path now, where something is.
 * @param root the path of the watched folder, as answers carry it
 * @param actual where the change is
 */
export async function eventWithEntry(
  change: Change,
  root: string,
  actual: Buffer,
  sources: EntrySources,
): Promise<FilesystemEvent> {
  const event = eventOf(change);
  if (!WITH_ENTRY.has(change.type)) return event;
  const shown = change.name === '' ? root : `${root === '/' ? '' : root}/${event.name}`;
  // It may be gone again, which is no fault.
  const entry = await entryInfo(shown, sources, actual).catch(() => undefined);
  return entry === undefined ? event : { ...event, entry };
}
