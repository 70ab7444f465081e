import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { run } from '@aenv/platform/process/run.ts';
import { StorageHost } from './testing/fixture.ts';

const DAEMON = 791_900;
const VM = 791_901;
const OTHER = 791_902;
const MIB = 1024 * 1024;
const SIZE = 16 * MIB;

/** nbdinfo-like look at a socket, as another user. */
async function connectAs(uid: number, socket: string): Promise<string> {
  const ids = [`--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', '--inh-caps=-all', '--bounding-set=-all'];
  const script =
    'const s=require("net").connect(process.argv[1]);s.on("error",e=>{console.log(e.code);process.exit()});s.once("data",d=>{console.log(d.toString("latin1",0,8));process.exit()})';
  const { stdout } = await run(['setpriv', ...ids, '--no-new-privs', '--', process.execPath, '-e', script, socket], {
    cwd: '/',
  });
  return stdout.trim();
}

test('the daemon is a user without any right, in all its threads, and cannot become another one', async () => {
  await using host = await StorageHost.open({ uid: DAEMON });
  const pid = await host.supervisor.pid();
  for (const thread of await readdir(`/proc/${pid}/task`)) {
    const status = await readFile(`/proc/${pid}/task/${thread}/status`, 'utf8');
    const field = (name: string) => new RegExp(`^${name}:[ \\t]*(.*)$`, 'm').exec(status)?.[1]?.replaceAll('\t', ' ');
    assert.equal(field('Uid'), `${DAEMON} ${DAEMON} ${DAEMON} ${DAEMON}`);
    assert.equal(field('Gid'), `${DAEMON} ${DAEMON} ${DAEMON} ${DAEMON}`);
    assert.equal(field('Groups')?.trim(), '');
    for (const set of ['CapPrm', 'CapEff', 'CapInh', 'CapAmb']) assert.equal(Number(`0x${field(set)}`), 0, set);
    assert.equal(field('NoNewPrivs'), '1');
    const stat = await readFile(`/proc/${pid}/task/${thread}/stat`, 'utf8');
    assert.equal(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[16], '-5', 'its turn comes before that of guests');
  }
});

test('a disk is reached by its VM and by no other one, also after a restart of the daemon', async () => {
  await using host = await StorageHost.open({ uid: DAEMON });
  const base = await host.layer(SIZE, MIB);
  const disk = await host.store.create('d', { origin: { kind: 'layers', layers: [base.path] }, sizeBytes: SIZE });
  const source = await disk.attach(VM);
  assert.ok(source.kind === 'nbd');
  for (let round = 0; round < 2; round++) {
    assert.equal(await connectAs(VM, source.socket), 'NBDMAGIC');
    assert.equal(await connectAs(OTHER, source.socket), 'EACCES');
    await host.killDaemon();
    await host.supervisor.call('list', {});
  }
  assert.equal(await connectAs(VM, host.daemon.runtime), 'EACCES');
  await disk.snapshot('s').then(({ durable }) => durable);
  await disk.remove();
});
