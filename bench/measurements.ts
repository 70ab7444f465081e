import { block } from './block/block.ts';
import { boot } from './boot/boot.ts';
import { commands } from './commands/commands.ts';
import { conversion } from './conversion/conversion.ts';
import { files } from './files/files.ts';
import { lifecycle } from './lifecycle/lifecycle.ts';
import type { Measurement } from './measurement.ts';
import { memory } from './memory/memory.ts';
import { proxy } from './proxy/proxy.ts';
import { remote } from './remote/remote.ts';
import { repository } from './repository/repository.ts';

/** All measurements, in the order in which they run. */
export const MEASUREMENTS: readonly Measurement[] = [
  boot,
  commands,
  proxy,
  files,
  memory,
  lifecycle,
  conversion,
  remote,
  block,
  repository,
];
