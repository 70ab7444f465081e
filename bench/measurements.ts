import { block } from './block/block.ts';
import { boot } from './boot/boot.ts';
import { commands } from './commands/commands.ts';
import { conversion } from './conversion/conversion.ts';
import { files } from './files/files.ts';
import { fork } from './fork/fork.ts';
import { idle } from './idle/idle.ts';
import { lifecycle } from './lifecycle/lifecycle.ts';
import type { Measurement } from './measurement.ts';
import { memory } from './memory/memory.ts';
import { pause } from './pause/pause.ts';
import { proxy } from './proxy/proxy.ts';
import { remote } from './remote/remote.ts';
import { repository } from './repository/repository.ts';
import { restore } from './restore/restore.ts';

/** All measurements, in the order in which they run. */
export const MEASUREMENTS: readonly Measurement[] = [
  boot,
  commands,
  proxy,
  files,
  memory,
  lifecycle,
  restore,
  pause,
  fork,
  idle,
  conversion,
  remote,
  block,
  repository,
];
