import type { Command } from 'commander';
import type { CollectedInfo, ImageInfo } from '../client/control-plane.ts';
import { openControlPlane } from '../client/session.ts';
import { bytes } from '../output/bytes.ts';
import { chooseFormat, printList } from '../output/format.ts';
import { printable } from '../output/table.ts';
import { forEachNamed } from './for-each.ts';
import { globalFlags, outputOption } from './options.ts';

/** `image ls`, `image rm`, `image gc`. */
export function registerImages(program: Command): void {
  const image = program.command('image').alias('images').summary('images that templates were made of');
  image
    .command('ls')
    .alias('list')
    .summary('list images with their sizes and users')
    .description(
      'Lists images. UNIQUE is what its layers occupy that no other image has, SHARED what others have too, REMOTE what ' +
        'stays in a registry and is read on demand.',
    )
    .addOption(outputOption())
    .action(async (flags: { output?: string }, command: Command) => {
      printList(await (await openControlPlane(globalFlags(command))).images(), LISTING, flags.output);
    });

  image
    .command('rm')
    .alias('delete')
    .summary('remove images that nobody uses')
    .description(
      'Removes images with the layers that no other image needs. One that is used is refused, and its users named.',
    )
    .argument('<image...>', 'digests, beginnings of digests (6 digits or more), or names')
    .action(async (names: string[], _flags, command: Command) => {
      const api = await openControlPlane(globalFlags(command));
      await forEachNamed(names, async (name) => {
        const { freedBytes } = await api.removeImage(name);
        console.log(`${printable(name)}  ${bytes(freedBytes)} freed`);
      });
    });

  image
    .command('gc')
    .summary('remove all images that nobody uses')
    .addOption(outputOption())
    .action(async (flags: { output?: string }, command: Command) => {
      const collected = await (await openControlPlane(globalFlags(command))).collectImages();
      printCollected(collected, flags.output);
    });
}

function printCollected(collected: CollectedInfo, output: string | undefined): void {
  if (chooseFormat(output, process.stdout.isTTY === true) === 'json') {
    console.log(JSON.stringify(collected, null, 2));
    return;
  }
  for (const { kind, path, bytes: size } of collected.removed)
    console.log(`${kind}  ${printable(path)}  ${bytes(size)}`);
  console.log(`${collected.removed.length} removed, ${bytes(collected.freedBytes)} freed`);
}

const LISTING = {
  head: ['DIGEST', 'NAME', 'LAYERS', 'DISK', 'UNIQUE', 'SHARED', 'REMOTE', 'USED BY'],
  row: (image: ImageInfo) => [
    image.digest.slice('sha256:'.length, 'sha256:'.length + 12),
    (image.name.split('@')[0] ?? '') || '-',
    String(image.layers),
    `${image.diskSizeMB} MiB`,
    bytes(image.uniqueBytes),
    bytes(image.sharedBytes),
    bytes(image.remoteBytes),
    image.usedBy.join(', '),
  ],
};
