import { rm } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { ENVD_PORT } from '@aenv/contracts/guest/link.ts';
import { SerialLog } from '../console/serial-log.ts';
import {
  type CaptureTarget,
  type MicroVm,
  PAGE_SIZE,
  type VmExit,
  type VmRecord,
  type VmShape,
  type VmState,
} from '../contract/micro-vm.ts';
import type { BootPlan } from './boot-plan.ts';
import { FakeEnvd, type FakeMemory } from './fake-envd.ts';
import { captureFake } from './fake-memory.ts';
import { type ConnectionHandler, FakePorts } from './fake-ports.ts';
import { Gate } from './gated-stream.ts';

/** A VM of the fake driver: what a test does to its guest, beside what the product does to the VM. */
export class FakeVm implements MicroVm {
  readonly record: VmRecord;
  readonly spec: VmShape;
  readonly envd: FakeEnvd;
  readonly exited: Promise<VmExit>;
  readonly #exit = Promise.withResolvers<VmExit>();
  readonly #gate = new Gate();
  readonly #ports: FakePorts;
  readonly #serial: SerialLog;
  readonly #timers = new Set<NodeJS.Timeout>();
  #state: VmState = 'running';
  #ending: Promise<void> | undefined;

  constructor(record: VmRecord, spec: VmShape, envdVersion: string, memory?: FakeMemory) {
    this.record = record;
    this.spec = spec;
    this.envd = new FakeEnvd(envdVersion, memory);
    this.exited = this.#exit.promise;
    this.#ports = new FakePorts(spec.network.hostAddress, this.#gate);
    this.#serial = new SerialLog(spec.serialLog);
  }

  /** Follows the plan. A guest that is slow answers later, one that hangs accepts connections and never answers. */
  async boot(plan: Exclude<BootPlan, { kind: 'refuse' }>): Promise<void> {
    await this.print(`booting ${this.record.incarnation}`);
    const envd: ConnectionHandler = (stream) => this.envd.handle(stream);
    if (plan.kind === 'hang') await this.serve(ENVD_PORT, (stream) => stream.resume());
    else if (plan.kind === 'die') this.#after(plan.afterMs ?? 0, () => this.die(plan.lastLine));
    else if (plan.delayMs === undefined) await this.serve(ENVD_PORT, envd);
    else this.#after(plan.delayMs, () => this.serve(ENVD_PORT, envd));
  }

  /** Continues where its memory was captured, standing still. */
  async restore(): Promise<void> {
    this.#gate.close();
    this.#state = 'paused';
    await this.serve(ENVD_PORT, (stream) => this.envd.handle(stream));
  }

  get state(): VmState {
    return this.#state;
  }

  /** Open connections to the guest. */
  get connections(): number {
    return this.#ports.connections;
  }

  async pause(): Promise<void> {
    this.#refuseWhenEnded();
    this.#gate.close();
    this.#state = 'paused';
  }

  async resume(): Promise<void> {
    this.#refuseWhenEnded();
    this.#state = 'running';
    this.#gate.reopen();
  }

  async privateBytes(): Promise<number> {
    return PAGE_SIZE;
  }

  async changedBytes(): Promise<number> {
    this.#refuseWhenEnded();
    return PAGE_SIZE;
  }

  async capture(target: CaptureTarget): Promise<void> {
    this.#refuseWhenEnded();
    if (this.#state !== 'paused') throw new AenvError('capture_failed', `VM ${this.record.incarnation} is not paused`);
    await captureFake(this.envd.memory, target).catch((error: unknown) => {
      throw AenvError.from(error, 'the fake could not be captured');
    });
  }

  async stop(): Promise<void> {
    await this.#end('stopped');
  }

  /** The VM ends by itself. */
  async die(lastLine?: string): Promise<void> {
    if (lastLine !== undefined) await this.print(lastLine);
    await this.#end('died');
  }

  /** A program of the guest listens on an outer port. */
  serve(port: number, handler: ConnectionHandler): Promise<void> {
    return this.#ports.listen(port, handler);
  }

  /** An HTTP server of the guest, on an outer port. */
  async serveHttp(port: number, listener: RequestListener): Promise<void> {
    const server = createServer(listener);
    await this.serve(port, (stream) => server.emit('connection', stream));
  }

  /** The program that listens on the port ends. */
  unserve(port: number): Promise<void> {
    return this.#ports.unlisten(port);
  }

  /** The guest prints a line to its console. */
  print(line: string): Promise<void> {
    return this.#serial.append(Buffer.from(`${line}\n`));
  }

  #end(reason: VmExit['reason']): Promise<void> {
    this.#ending ??= this.#shutDown(reason);
    return this.#ending;
  }

  async #shutDown(reason: VmExit['reason']): Promise<void> {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#state = 'exited';
    await this.#ports.close();
    await rm(this.record.runDir, { recursive: true, force: true });
    const lastLines = await this.#serial.lastLines(20);
    this.#exit.resolve({ reason, code: reason === 'stopped' ? 0 : null, signal: null, lastLines });
  }

  #refuseWhenEnded(): void {
    if (this.#state === 'exited') throw new AenvError('vm_died', `VM ${this.record.incarnation} has ended`);
  }

  #after(ms: number, step: () => Promise<void>): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      step().catch(() => {});
    }, ms);
    this.#timers.add(timer);
  }
}
