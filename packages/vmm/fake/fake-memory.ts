import { open, writeFile } from 'node:fs/promises';
import { type CaptureTarget, PAGE_SIZE, type VmImage } from '../contract/micro-vm.ts';
import type { FakeMemory } from './fake-envd.ts';

const STATE = 'fake devices\n';

/** A fake guest's memory has content in its first page only, as JSON. */
export async function captureFake(memory: FakeMemory, target: CaptureTarget): Promise<void> {
  await writeFile(target.deviceState, STATE, { mode: 0o600, flag: 'wx' });
  const page = Buffer.alloc(PAGE_SIZE);
  page.write(JSON.stringify(memory));
  await target.memory.data(0, page);
}

/** @throws Error when there is no such memory in the image */
export async function restoreFake(image: VmImage): Promise<FakeMemory> {
  await using devices = await open(image.deviceState);
  if ((await devices.readFile('utf8')) !== STATE) throw new Error('the device state is not that of a fake');
  await using base = await open(image.memoryBase);
  const page = Buffer.alloc(PAGE_SIZE);
  await base.read(page, 0, PAGE_SIZE, 0);
  await image.delta?.({
    data: (offset, bytes) => {
      if (offset === 0) page.set(bytes.subarray(0, PAGE_SIZE));
    },
    zero: (offset) => {
      if (offset === 0) page.fill(0);
    },
  });
  const end = page.indexOf(0);
  return JSON.parse(page.toString('utf8', 0, end < 0 ? PAGE_SIZE : end));
}
