import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import { SerialLog } from '../console/serial-log.ts';
import { QemuVm } from './qemu-vm.ts';
import { QmpClient } from './qmp/client.ts';
import { StderrFile } from './stderr-file.ts';

/** No process has this number. */
const NOBODY = { pid: 2 ** 30, startTime: 1 };
const PATIENCE_MS = 50;

/** A machine that does one command after the other, the first one of a name that is in `late` long after it was asked. */
async function machine(t: TestContext, state: 'running' | 'paused', late: string) {
  const folder = await mkdtemp(join(tmpdir(), 'vmm-vm-'));
  const seen = { state, commands: [] as string[] };
  let turn = Promise.resolve();
  const obey = async (socket: Socket, { execute, id }: { execute: string; id: number }) => {
    if (execute === 'stop' || execute === 'cont') {
      seen.commands.push(execute);
      if (execute === late && seen.commands.indexOf(execute) === seen.commands.length - 1) await delay(4 * PATIENCE_MS);
      seen.state = execute === 'stop' ? 'paused' : 'running';
    }
    socket.write(`${JSON.stringify({ return: {}, id })}\r\n`);
  };
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => {}));
    socket.write('{"QMP": {"version": {}, "capabilities": []}}\r\n');
    socket.on('data', (data) => {
      for (const line of data.toString().trim().split('\n')) turn = turn.then(() => obey(socket, JSON.parse(line)));
    });
  });
  const path = join(folder, 'qmp.sock');
  await new Promise<void>((resolve) => server.listen(path, resolve));
  const qmp = await QmpClient.connect(path, 5_000);
  const vm = new QemuVm({
    record: {
      ...{ kind: 'qemu', incarnation: 'i1-a', process: NOBODY, runDir: folder },
      ...{ serialLog: join(folder, 'log'), memoryBase: join(folder, 'memory') },
    },
    process: { identity: NOBODY, ended: new Promise(() => {}) },
    ...{ qmp, serial: new SerialLog(join(folder, 'log')), stderr: new StderrFile(folder), state },
    ...{ pauseTimeoutMs: PATIENCE_MS, log: silentLogger, cleanUp: async () => {} },
  });
  t.after(async () => {
    vm.detach();
    for (const socket of sockets) socket.destroy();
    server.close();
    await rm(folder, { recursive: true });
  });
  return { vm, seen };
}

/** Asks again while the answer is not in time: what was asked before comes first. */
async function inTheEnd(ask: () => Promise<void>): Promise<void> {
  for (const end = Date.now() + 10_000; ; ) {
    try {
      return await ask();
    } catch (error) {
      if (Date.now() > end) throw error;
    }
  }
}

test('a machine that stops only after nobody waits for it any more is let go on again', async (t) => {
  const { vm, seen } = await machine(t, 'running', 'stop');
  await assert.rejects(vm.pause(), { code: 'vm_died' });
  await inTheEnd(() => vm.resume());
  assert.deepEqual([seen.commands.slice(0, 2), seen.state, vm.state], [['stop', 'cont'], 'running', 'running']);
  const { length } = seen.commands;
  await vm.resume();
  assert.equal(seen.commands.length, length, 'it is known to run');
});

test('a machine that may go on any moment is not captured, and is stopped again', async (t) => {
  const { vm, seen } = await machine(t, 'paused', 'cont');
  await assert.rejects(vm.resume(), { code: 'vm_died' });
  const memory = {
    data: () => assert.fail('memory of a machine that may run'),
    zero: () => assert.fail('zeros of it'),
  };
  await assert.rejects(vm.capture({ deviceState: '/nowhere', memory }), { code: 'capture_failed' });
  await inTheEnd(() => vm.pause());
  assert.deepEqual([seen.commands.slice(0, 2), seen.state, vm.state], [['cont', 'stop'], 'paused', 'paused']);
});
