import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { Metrics } from '@aenv/platform/observability/metrics.ts';
import type { OperationResult } from '../blockd/control/messages.ts';
import type { Daemon } from './nbd-store.ts';

type Counters = OperationResult<'counters'>;

const EVERY_MS = 5_000;

/** Brings the daemon's counters into the node's metrics, every few seconds until closed. */
export function followDiskMetrics(daemon: Daemon, metrics: Metrics, log: Logger): { close(): void } {
  const take = diskMetrics(metrics);
  let failing = false;
  const look = async () => {
    try {
      take(await daemon.call('counters', {}));
      failing = false;
    } catch (error) {
      if (!failing) log.debug('the counters of the block daemon are not to be had', { error });
      failing = true;
    }
  };
  void look();
  const timer = setInterval(() => void look(), EVERY_MS);
  timer.unref();
  return { close: () => clearInterval(timer) };
}

/** @returns takes what the daemon has counted so far; a daemon that was started anew begins with 0 */
export function diskMetrics(metrics: Metrics): (now: Counters) => void {
  const requests = metrics.counter('aenv_block_requests_total', 'Requests of VMs to their disks', ['kind']);
  const bytes = metrics.counter('aenv_block_bytes_total', 'Bytes that VMs have read from or written to their disks', [
    'kind',
  ]);
  const errors = metrics.counter('aenv_block_errors_total', 'Requests of VMs to their disks that failed');
  const swaps = metrics.counter('aenv_block_snapshots_total', 'Snapshots of disks');
  const compactions = metrics.counter('aenv_block_compactions_total', 'Merges of layers');
  const disks = metrics.gauge('aenv_block_disks', 'Disks on this host', ['state']);
  const connections = metrics.gauge('aenv_block_connections', 'Open connections to disks');
  const last: Partial<Record<keyof Counters, number>> = {};
  return (now) => {
    const since = (key: keyof Counters) => {
      const before = last[key] ?? 0;
      last[key] = now[key];
      return now[key] >= before ? now[key] - before : now[key];
    };
    requests.add(since('reads'), { kind: 'read' });
    requests.add(since('writes'), { kind: 'write' });
    requests.add(since('flushes'), { kind: 'flush' });
    requests.add(since('zeroes'), { kind: 'zero' });
    bytes.add(since('readBytes'), { kind: 'read' });
    bytes.add(since('writtenBytes'), { kind: 'write' });
    errors.add(since('errors'));
    swaps.add(since('swaps'));
    compactions.add(since('compactions'));
    disks.set(now.attached, { state: 'attached' });
    disks.set(now.disks - now.attached, { state: 'detached' });
    connections.set(now.connections);
  };
}
