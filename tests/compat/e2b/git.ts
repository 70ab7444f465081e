import assert from 'node:assert/strict';
import type { Group } from '../support/scenario.ts';
import type { SdkBed } from './bed.ts';

export const git: Group<SdkBed> = {
  title: 'Git',
  scenarios: [
    {
      name: 'init, configure, commit, status, clone, branch',
      since: '2.23.0',
      async run(bed) {
        const { git, files } = await bed.main();
        const path = '/home/user/repository';
        await git.init(path, { initialBranch: 'main' });
        await git.configureUser('A', 'a@some.test', { scope: 'local', path });
        await files.write(`${path}/file`, 'x');
        assert.deepEqual(
          (await git.status(path)).fileStatus.map(({ name }) => name),
          ['file'],
        );
        await git.add(path);
        await git.commit(path, 'first');
        assert.equal((await git.status(path)).fileStatus.length, 0);
        await git.clone(`file://${path}`, { path: '/home/user/clone' });
        assert.equal(await files.read('clone/file'), 'x');
        await git.createBranch('/home/user/clone', 'other');
        assert.equal((await git.branches('/home/user/clone')).currentBranch, 'other');
      },
    },
  ],
};
