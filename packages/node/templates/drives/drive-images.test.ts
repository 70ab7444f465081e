import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { PulledImage } from '@aenv/images/pull/contract.ts';
import { silentLogger } from '@aenv/platform/observability/logger.ts';
import type { AssetUses } from '../../assets/contract.ts';
import type { PullRequest } from '../pull/pull.ts';
import { NodeDriveImages } from './drive-images.ts';

const blob = { host: 'h', repository: 'r', digest: 'sha256:01', size: 5 };

function pulledAs({ driveLabel = '', sizeBytes = 2 ** 30 }: PullRequest): PulledImage {
  return {
    ...{ name: 'n', digest: 'sha256:00', sizeBytes, prepared: false },
    config: { env: {}, workingDir: '', user: '', exposedPorts: [], labels: {}, entrypoint: [], cmd: [] },
    start: { user: 'root', workdir: '/', envVars: {} },
    layers: [
      { kind: 'remote', digest: blob.digest, sizeBytes: 5, remote: blob },
      { kind: 'file', digest: driveLabel, sizeBytes: 5, path: `/layers/${driveLabel}` },
    ],
  };
}

const never = async () => assert.fail('nothing was prepared');
const drive = (driveId: string, more: object = {}) => ({
  ...{ driveId, image: `image-of-${driveId}`, mountPath: `/mnt/${driveId}`, readOnly: true },
  ...more,
});

test('each drive has a label of its own and the size of its disk; its layers are kept until all is done', async () => {
  const steps: unknown[] = [];
  const uses: Pick<AssetUses, 'during'> = {
    async during(work) {
      const result = await work(async (paths) => void steps.push(paths));
      steps.push('released');
      return result;
    },
  };
  const drives = new NodeDriveImages({ pull: async (request) => pulledAs(request), uses, log: silentLogger });
  const asked = [drive('a'), drive('b', { sizeMb: 64, subPath: 'x', readOnly: false })];
  await drives.use(asked, async (starts) => {
    assert.deepEqual(
      starts.map((start) => start.drive),
      [
        { driveId: 'a', label: 'aenv-drive-1', mountPath: '/mnt/a', readOnly: true, sizeMb: 1024 },
        { driveId: 'b', label: 'aenv-drive-2', mountPath: '/mnt/b', subPath: 'x', readOnly: false, sizeMb: 64 },
      ],
    );
    const { disk } = starts[1] ?? assert.fail('two drives');
    assert.ok(disk.kind === 'layers');
    assert.deepEqual([typeof disk.layers[0], disk.layers[1]], ['object', '/layers/aenv-drive-2']);
    steps.push('made');
  });
  assert.deepEqual(steps, [['/layers/aenv-drive-1', '/layers/aenv-drive-2'], 'made', 'released']);
  assert.equal(await drives.use([], async (starts) => starts.length), 0);
});

test('an image that cannot be had is told with the name of its drive; too many at a time are refused', async () => {
  const gate = Promise.withResolvers<void>();
  const drives = new NodeDriveImages({
    pull: async (request) => {
      if (request.image === 'image-of-absent') throw new AenvError('image_not_found', 'no such image');
      await gate.promise;
      return pulledAs(request);
    },
    uses: { during: (work) => work(async () => {}) },
    log: silentLogger,
  });
  await assert.rejects(drives.use([drive('absent')], never), {
    ...{ code: 'image_not_found', message: "drive 'absent': no such image" },
  });
  const four = Array.from({ length: 4 }, () => drives.use([drive('a')], async () => 1));
  await assert.rejects(drives.use([drive('a')], never), { code: 'capacity_exhausted' });
  gate.resolve();
  assert.deepEqual(await Promise.all(four), [1, 1, 1, 1]);
  await drives.close();
});
