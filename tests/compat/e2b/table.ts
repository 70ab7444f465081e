import * as current from 'e2b';
import * as e2b20 from 'e2b-2-0';
import * as e2b223 from 'e2b-2-23';
import * as e2b245 from 'e2b-2-45';
import type { Column, Table } from '../support/scenario.ts';
import { type Sdk, SdkBed } from './bed.ts';
import { commands } from './commands.ts';
import { errors, unserved } from './errors.ts';
import { files } from './files.ts';
import { git } from './git.ts';
import { ends, kills, life } from './life.ts';
import { listing } from './listing.ts';
import { forking, pausing } from './pause.ts';
import { snapshots } from './snapshots.ts';
import { terminal } from './terminal.ts';
import { transport } from './transport.ts';
import { urls } from './urls.ts';
import { watching } from './watch.ts';

type Version = readonly [version: string, sdk: Sdk];

/** The oldest 2.x that is published, two between, the newest. The old ones lack members; scenarios say from when on. */
const VERSIONS: readonly [Version, ...Version[]] = [
  ['2.0.1', e2b20 as unknown as Sdk],
  ['2.23.0', e2b223 as unknown as Sdk],
  ['2.45.0', e2b245 as unknown as Sdk],
  ['2.51.0', current],
];

export function sdkTable(): Table<SdkBed> {
  const columns = VERSIONS.map(
    ([version, sdk]): Column<SdkBed> => ({
      title: version,
      version,
      always: version === VERSIONS[0][0] || version === VERSIONS.at(-1)?.[0],
      open: (host) => new SdkBed(sdk, version, host),
      close: (bed) => bed.close(),
    }),
  );
  return {
    client: 'e2b',
    intro: 'The JavaScript SDK, from npm.',
    groups: [
      life,
      listing,
      commands,
      terminal,
      files,
      watching,
      git,
      urls,
      errors,
      unserved,
      transport,
      pausing,
      kills,
      forking,
      snapshots,
      ends,
    ],
    columns,
  };
}
