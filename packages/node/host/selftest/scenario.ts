import { setTimeout as delay } from 'node:timers/promises';
import type { SelftestClient, TestSandbox } from './client.ts';
import { type GuestFacts, readFacts, type Witness } from './facts.ts';
import type { Findings } from './findings.ts';
import { HANGING_HOOK, HOOK_FILES, hookLogProblem } from './hooks.ts';
import { firstOwnTick, readTicks, sameDraws, WITNESS } from './witness.ts';

/** So long the sandbox stands still: longer than a clock may be wrong. */
const PAUSE_MS = 3_000;
const CLOCK_SECONDS = 1;
/** A clock that is right from the first turn on does not move afterwards. */
const STEP_NS = 200_000_000n;
const PING_MS = 10_000;
const STREAM_MS = 5_000;
const WAIT_MS = 60_000;

/** What a connection says that was broken, and not closed by the other end. */
const BROKEN = ['ConnectionAbortedError', 'ConnectionResetError', 'BrokenPipeError', 'TimeoutError'];

const ASK_RESOLVER = `python3 -c "
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(1)
s.sendto(bytes.fromhex('5a5a01000001000000000000') + b'\\\\x07example\\\\x03com\\\\x00\\\\x00\\\\x01\\\\x00\\\\x01', ('169.254.0.22', 53))
print(s.recv(512)[:2].hex())"`;

const REACH_OUT = `python3 -c "
import socket
for place in (('169.254.169.254', 80), ('1.1.1.1', 53), ('10.0.0.1', 22)):
    try:
        socket.create_connection(place, 3).close(); print('reached', *place)
    except OSError as error:
        print(type(error).__name__)"`;

export interface ScenarioOptions {
  readonly findings: Findings;
  /** whether one of the hooks never ends by itself */
  readonly hangingHook: boolean;
  /** told what is done next */
  readonly progress: (what: string) => void;
}

/** Goes through a pause, a fork and a create with real microVMs and looks at everything that can go wrong. */
export async function runScenario(
  client: SelftestClient,
  { findings, hangingHook, progress }: ScenarioOptions,
): Promise<void> {
  const made: TestSandbox[] = [];
  try {
    progress('two sandboxes of one template');
    const source = await client.create();
    made.push(source);
    const confined = await client.create({ allow_internet_access: false });
    made.push(confined);
    await afterCreate(client, findings, [source, confined]);
    await prepare(client, source, hangingHook);
    progress('a pause, and a resume');
    await afterResume(client, findings, source, hangingHook);
    progress('two forks');
    const children = await client.fork(source, 2);
    made.push(...children);
    await afterFork(client, findings, source, children);
    progress('rules for the network over a pause');
    await egress(client, findings, confined);
  } finally {
    await Promise.allSettled(made.map((sandbox) => client.remove(sandbox)));
  }
}

async function afterCreate(client: SelftestClient, findings: Findings, sandboxes: readonly TestSandbox[]) {
  const facts: GuestFacts[] = [];
  for (const sandbox of sandboxes) facts.push(await readFacts(client, sandbox));
  for (const [at, { hostname, machineId, clockError }] of facts.entries()) {
    findings.equal('host name', 'after a create', hostname, sandboxes[at]?.sandboxID);
    findings.check('machine-id', /^[0-9a-f]{32}$/.test(machineId), `after a create: '${machineId}'`);
    checkClock(findings, 'create', clockError);
  }
  findings.distinct(
    'machine-id',
    'those of two sandboxes',
    facts.map(({ machineId }) => machineId),
  );
  findings.distinct(
    'boot id',
    'those of two sandboxes',
    facts.map(({ bootId }) => bootId),
  );
  findings.distinct(
    'tokens',
    'those of two sandboxes',
    sandboxes.map(({ envdAccessToken }) => envdAccessToken),
  );
  checkRandom(findings, 'two sandboxes', facts);
}

async function prepare(client: SelftestClient, sandbox: TestSandbox, hangingHook: boolean): Promise<void> {
  const hooks = [...HOOK_FILES, ...(hangingHook ? [HANGING_HOOK] : [])];
  for (const { path, text } of hooks) await client.write(sandbox, path, text);
  await client.run(sandbox, `chmod 755 ${hooks.map(({ path }) => path).join(' ')}`);
  await client.write(sandbox, '/root/witness.py', WITNESS);
  await client.run(sandbox, 'setsid python3 /root/witness.py > /run/witness.log 2>&1 < /dev/null & echo');
  await witnessOf(client, sandbox, ({ n, connected }) => n > 20 && connected);
}

async function afterResume(
  client: SelftestClient,
  findings: Findings,
  sandbox: TestSandbox,
  hangingHook: boolean,
): Promise<void> {
  const giveUp = new AbortController();
  const stream = client.listen(sandbox, 8000, giveUp.signal);
  const command = client.start(sandbox, 'sleep 1000');
  const commandEnd = command.exited.then(
    ({ status }) => `ended: ${status}`,
    () => 'broke',
  );
  await command.started;
  await witnessOf(client, sandbox, ({ inbound }) => inbound > 0);
  // Not synced: it is in the memory of the guest only.
  await client.run(sandbox, 'head -c 8000000 /dev/urandom > /root/unsynced; sha256sum /root/unsynced > /run/sum');
  const before = await readFacts(client, sandbox);
  const begin = Date.now();
  await client.pause(sandbox);
  const hangs = delay(STREAM_MS, 'hangs');
  findings.check('connections from outside', (await Promise.race([commandEnd, hangs])) === 'broke', 'a command hangs');
  findings.check('connections from outside', (await Promise.race([stream, hangs])) !== 'hangs', 'an answer hangs');
  giveUp.abort();
  command.detach();
  await delay(PAUSE_MS);
  const resumed = await client.resume(sandbox);
  const answered = Date.now();
  const after = await readFacts(client, sandbox);
  const now = Date.now();
  findings.check('ping', now - answered < PING_MS, `the first command after a resume took ${now - answered} ms`);
  checkClock(findings, 'resume', after.clockError);
  const ran = after.uptime - before.uptime;
  const most = (now - begin - PAUSE_MS) / 1000;
  findings.check('monotonic clock', ran >= 0 && ran <= most, `it went on by ${ran} s, in at most ${most} s`);
  findings.equal('host name', 'after a resume', after.hostname, before.hostname);
  findings.equal('machine-id', 'after a resume', after.machineId, before.machineId);
  findings.equal('boot id', 'after a resume', after.bootId, before.bootId);
  findings.equal('tokens', 'after a resume', resumed.envdAccessToken, sandbox.envdAccessToken);
  checkRandom(findings, 'before and after a resume', [before, after]);
  await checkWitness(client, findings, 'resume', sandbox, before.witness);
  await checkDisk(client, findings, 'resume', sandbox);
  const problem = hookLogProblem(await client.hookLog(sandbox), hangingHook);
  findings.check('hooks', problem === undefined, `after a resume: ${problem}`);
  const trace = await client.run(sandbox, 'cat /run/hooks');
  findings.equal('hooks', 'those that ran', trace, `first resume ${sandbox.sandboxID}\nlast resume`);
}

async function afterFork(
  client: SelftestClient,
  findings: Findings,
  source: TestSandbox,
  children: readonly TestSandbox[],
): Promise<void> {
  const all = [source, ...children];
  const facts: GuestFacts[] = [];
  for (const sandbox of all) facts.push(await readFacts(client, sandbox));
  const [parent, ...own] = facts;
  findings.distinct(
    'machine-id',
    'those of forks and their source',
    facts.map(({ machineId }) => machineId),
  );
  findings.distinct(
    'tokens',
    'those of forks and their source',
    all.map(({ envdAccessToken }) => envdAccessToken),
  );
  checkRandom(findings, 'forks and their source', facts);
  for (const [at, { hostname, bootId, clockError }] of own.entries()) {
    findings.equal('host name', 'after a fork', hostname, children[at]?.sandboxID);
    findings.equal('boot id', 'after a fork', bootId, parent?.bootId);
    checkClock(findings, 'fork', clockError);
  }
  checkClock(findings, 'source of a fork', parent?.clockError ?? Number.NaN);
  for (const child of children) {
    await checkWitness(client, findings, 'fork', child, parent?.witness);
    await checkDisk(client, findings, 'fork', child);
    const opened = await client.run(child, 'true', source.envdAccessToken).then(
      () => true,
      () => false,
    );
    findings.check('tokens', !opened, 'the token of the source opens a fork');
  }
  const witnesses = await Promise.all(all.map((sandbox) => witnessOf(client, sandbox, () => true)));
  const draws = witnesses.map(({ draw }) => draw);
  findings.distinct('random numbers of programs', 'those drawn in forks and their source', draws);
  const seeded = witnesses.map((witness) => witness.seeded);
  findings.equal('random numbers of programs', 'programs told to reseed', seeded.join(' '), '0 1 1');
  await checkTicks(client, findings, all);
}

/** What the programs did between the first instruction of their machine and the end of the restore. */
async function checkTicks(client: SelftestClient, findings: Findings, all: readonly TestSandbox[]): Promise<void> {
  const ticks = await Promise.all(all.map(async (sandbox) => readTicks(await client.read(sandbox, '/run/ticks'))));
  const name = 'user code before the restore is over';
  for (const [at, mine] of ticks.entries()) {
    for (const other of ticks.slice(at + 1)) {
      const same = sameDraws(mine, other);
      findings.check(name, same === 0, `${same} numbers were drawn by two machines that are not of their common past`);
    }
    const [other] = ticks.filter((candidate) => candidate !== mine);
    const first = other === undefined ? undefined : firstOwnTick(mine, other);
    const last = [...mine.values()].at(-1);
    if (first === undefined || last === undefined) {
      findings.check(name, false, 'a program does not go on');
      continue;
    }
    const moved = last.wall - last.monotonic - (first.wall - first.monotonic);
    findings.check(name, moved < STEP_NS && moved > -STEP_NS, `a program saw a clock that was ${moved} ns late`);
  }
}

async function egress(client: SelftestClient, findings: Findings, sandbox: TestSandbox): Promise<void> {
  const before = await client.run(sandbox, REACH_OUT);
  await client.pause(sandbox);
  await client.resume(sandbox);
  const after = await client.run(sandbox, REACH_OUT);
  findings.check('egress rules', !before.includes('reached'), `before a pause: ${before}`);
  findings.equal('egress rules', 'after a resume', after, before);
}

async function checkWitness(
  client: SelftestClient,
  findings: Findings,
  when: string,
  sandbox: TestSandbox,
  before: Witness | undefined,
): Promise<void> {
  if (before === undefined) throw new Error('the program that watches does not run');
  const answer = await client.run(sandbox, ASK_RESOLVER).catch((error: unknown) => String(error));
  findings.equal('names and routes', `after a ${when}`, answer, '5a5a');
  const now = await witnessOf(client, sandbox, ({ n }) => n > before.n);
  findings.equal('disk and memory', `pid of a program after a ${when}`, now.pid, before.pid);
  findings.check('disk and memory', now.whole, `after a ${when} an open file has lost lines`);
  findings.check('loopback connections', now.loopback > before.loopback, `after a ${when} one says nothing`);
  const broken = now.outside.some((how) => BROKEN.includes(how));
  findings.check('connections from outside', broken, `after a ${when} the guest saw: ${now.outside.join(' ')}`);
  findings.equal('connections from outside', `those of the past after a ${when}`, now.inbound, 0);
}

async function checkDisk(client: SelftestClient, findings: Findings, when: string, sandbox: TestSandbox) {
  const command = 'sync; echo 3 > /proc/sys/vm/drop_caches; sha256sum --check --quiet /run/sum';
  const problem = await client.run(sandbox, command).catch((error: unknown) => String(error));
  findings.check('disk and memory', problem === '', `after a ${when}: ${problem}`);
}

function checkClock(findings: Findings, when: string, error: number): void {
  findings.check('wall clock', Math.abs(error) <= CLOCK_SECONDS, `after a ${when} it was wrong by ${error} s`);
}

function checkRandom(findings: Findings, of: string, facts: readonly GuestFacts[]): void {
  const name = 'kernel random numbers';
  findings.distinct(
    name,
    `bytes of ${of}`,
    facts.map(({ random }) => random),
  );
  findings.distinct(
    name,
    `UUIDs of ${of}`,
    facts.map(({ uuid }) => uuid),
  );
}

/** Waits until what the program says is so. */
async function witnessOf(
  client: SelftestClient,
  sandbox: TestSandbox,
  holds: (witness: Witness) => boolean,
): Promise<Witness> {
  const end = Date.now() + WAIT_MS;
  for (;;) {
    const { witness } = await readFacts(client, sandbox);
    if (witness !== undefined && holds(witness)) return witness;
    if (Date.now() > end) {
      const log = await client.run(sandbox, 'tail -c 2000 /run/witness.log');
      throw new Error(`the program in the sandbox does not come so far: ${JSON.stringify(witness)} ${log}`);
    }
    await delay(100);
  }
}
