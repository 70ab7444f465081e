/**
 * Whole trees in one request: an extension of envd that our own CLI uses, because files one by one lose links, modes and
 * times. Access is that of /files: X-Access-Token, or the signature parameters (operation `read` or `write`).
 *
 * `GET /aenv/archive?path=&username=` -> 200 `application/x-tar`, a PAX archive of the file or tree.
 *  - A folder's entries are named relative to it, without `./` and without the folder itself; a single file (or a
 *    symbolic link) is one entry with its base name. `X-Aenv-Archive-Kind` tells which: `directory` or `file`.
 *  - Modes (setuid, setgid and sticky included), mtimes in fractions of a second, empty folders, symbolic links as links
 *    (a link given as `path` that leads to a folder is followed), hard links as links to the first name in the archive.
 *  - What cannot travel is left out and named by the last entry (see `ARCHIVE_REPORT_KEY`): fifos, sockets, devices,
 *    names that are not UTF-8, what vanished or changed its size while it was read.
 *  - 404 missing, 400 neither file nor folder, 401 unknown user. A fault midway breaks the connection: an archive
 *    without its two zero blocks at the end is not complete.
 *
 * `POST /aenv/archive?path=&username=` with a tar body (`Content-Encoding: gzip` is undone) -> 200 `UnpackAnswer`.
 *  - Unpacks below `path`, which is made if missing, parents included. Existing files are replaced, existing folders
 *    kept. Owner is the user; modes, mtimes, symbolic and hard links are those of the archive.
 *  - 400 and no further entry for a hostile name: absolute, with `..`, through a symbolic link, a hard link to outside of
 *    `path`. Entries before it stay. 507 on a full disk. Fifos and devices are skipped and named in the answer.
 */
export const ARCHIVE_PATH = '/aenv/archive';

/** Answer header of GET: what `path` was, `directory` or `file`. */
export const ARCHIVE_KIND_HEADER = 'x-aenv-archive-kind';

/**
 * PAX record with the value `skipped` on the last entry of an archive in which something was left out. Its body is JSON,
 * `SkippedEntry[]`; the entry is a message for the reader and never written to disk.
 */
export const ARCHIVE_REPORT_KEY = 'AENV.report';

/** Name of that entry. */
export const ARCHIVE_REPORT_NAME = '.aenv-skipped.json';

/** The most bytes that its body has; a longer list is cut. */
export const ARCHIVE_REPORT_MAX = 1024 * 1024;

/** Something that an archive does not hold. */
export interface SkippedEntry {
  /** relative to the archive's root; bytes that are no UTF-8 shown as U+FFFD */
  readonly path: string;
  readonly reason: 'fifo' | 'socket' | 'device' | 'name' | 'changed' | 'unreadable';
}

/** Body of the answer to POST. */
export interface UnpackAnswer {
  /** entries written, folders and links included */
  readonly entries: number;
  /** bytes of file contents */
  readonly bytes: number;
  readonly skipped: readonly SkippedEntry[];
}
