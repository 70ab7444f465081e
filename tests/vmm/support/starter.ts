import { text } from 'node:stream/consumers';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { createQemuDriver } from '@aenv/vmm/qemu/driver.ts';

// Starts the VM described on stdin, prints its record and waits to be killed.

const { install, memoryDir, spec } = JSON.parse(await text(process.stdin));
const driver = createQemuDriver({ install, accelerator: 'tcg', memoryDir, log: silentLogger });
const vm = await driver.start(spec);
process.stdout.write(`${JSON.stringify(vm.record)}\n`);
await vm.exited;
