import assert from 'node:assert/strict';
import { MAX_CONNECTIONS } from '../support/host.ts';
import type { Group } from '../support/scenario.ts';
import type { Sdk, SdkBed } from './bed.ts';

type ErrorClass = abstract new (...args: never[]) => Error;

/** Fails unless the call fails with exactly that class (not a subclass) and a message that says `words`. */
async function rejects(call: Promise<unknown>, type: ErrorClass, words: RegExp): Promise<void> {
  await assert.rejects(call, (error: unknown) => {
    assert.ok(error instanceof Error);
    assert.equal(error.constructor.name, type.name, String(error));
    assert.match(error.message, words);
    return true;
  });
}

/** The class that a version has for a status of the control plane; the oldest knows SandboxError alone. */
function classOf(bed: SdkBed, name: keyof Sdk & `${string}Error`, since: string): ErrorClass {
  return bed.from(since) ? (bed.sdk[name] as ErrorClass) : bed.sdk.SandboxError;
}

export const errors: Group<SdkBed> = {
  title: 'Errors by class',
  scenarios: [
    {
      name: 'a key that is not valid: AuthenticationError',
      async run(bed) {
        const { domain } = bed.options;
        const call = bed.sdk.Sandbox.create('base', { domain, apiKey: `e2b_${'0b'.repeat(32)}` });
        await rejects(call, classOf(bed, 'AuthenticationError', '2.23.0'), /the API key is not valid/);
      },
    },
    {
      name: 'a template that is not there, or no name of one: told by name',
      async run(bed) {
        const create = (template: string) => bed.sdk.Sandbox.create(template, bed.options);
        await rejects(create('no-such-template'), bed.sdk.SandboxError, /^404: template 'no-such-template' not found/);
        await rejects(create('a b'), bed.sdk.SandboxError, /^400: body\.templateID: bad template reference/);
      },
    },
    {
      name: 'a sandbox that is not there: NotFoundError',
      async run(bed) {
        const id = 'nonexistingsandbox';
        const notFound = classOf(bed, 'SandboxNotFoundError', '2.23.0');
        const { Sandbox } = bed.sdk;
        await rejects(Sandbox.getInfo(id, bed.options), notFound, /not found/);
        await rejects(Sandbox.setTimeout(id, 10_000, bed.options), notFound, /not found/);
        await assert.rejects(Sandbox.connect(id, bed.options), bed.sdk.NotFoundError);
        assert.equal(await Sandbox.kill(id, bed.options), false);
      },
    },
    {
      name: 'times to live out of range: told with the field',
      async run(bed) {
        const sandbox = await bed.main();
        const create = (timeoutMs: number) => bed.sdk.Sandbox.create('base', { ...bed.options, timeoutMs });
        await rejects(create(0), bed.sdk.SandboxError, /^400: body\.timeout: Timeout must be greater than 0/);
        await rejects(create(86_401_000), bed.sdk.SandboxError, /^400: body\.timeout: .*86400/);
        await rejects(sandbox.setTimeout(1e15), bed.sdk.SandboxError, /^400: body\.timeout/);
      },
    },
    {
      name: 'files: what is missing, a folder, a file in the way',
      async run(bed) {
        const { files } = await bed.main();
        const { InvalidArgumentError } = bed.sdk;
        const notFound = bed.from('2.23.0') ? bed.sdk.FileNotFoundError : bed.sdk.NotFoundError;
        await rejects(files.read('nothing'), notFound, /nothing/);
        await rejects(files.list('nothing'), notFound, /nothing/);
        await files.makeDir('errors');
        await files.write('errors/file', 'x');
        await rejects(files.read('errors'), InvalidArgumentError, /is a directory/);
        await rejects(files.list('errors/file'), InvalidArgumentError, /errors\/file/);
        await rejects(files.makeDir('errors/file'), InvalidArgumentError, /errors\/file/);
        await rejects(files.write('errors/file/below', 'x'), InvalidArgumentError, /errors\/file/);
        await rejects(files.write(`errors/${'y'.repeat(256)}`, 'x'), InvalidArgumentError, /name|long/i);
      },
    },
    {
      name: 'a user who is not there: AuthenticationError',
      async run(bed) {
        const { commands, files } = await bed.main();
        const { AuthenticationError } = bed.sdk;
        await rejects(commands.run('id', { user: 'ghost' }), AuthenticationError, /invalid username: 'ghost'/);
        await rejects(files.write('x', 'y', { user: 'ghost' }), AuthenticationError, /ghost/);
        await rejects(files.list('/', { user: 'ghost' }), AuthenticationError, /ghost/);
      },
    },
    {
      name: 'a working directory that is not there: InvalidArgumentError',
      async run(bed) {
        const { commands } = await bed.main();
        const call = commands.run('pwd', { cwd: '/nowhere' });
        await rejects(call, bed.sdk.InvalidArgumentError, /cwd '\/nowhere' does not exist/);
      },
    },
    {
      name: 'a full disk: NotEnoughSpaceError; and when there is room again, it works',
      async run(bed) {
        const { commands, files } = await bed.main();
        const fill =
          'i=0; while fallocate -l 1G /fill$i 2>/dev/null; do i=$((i+1)); done; dd if=/dev/zero of=/fill bs=1M';
        const full = await commands.run(fill, { user: 'root', timeoutMs: 60_000 }).catch((error: unknown) => error);
        assert.ok(full instanceof bed.sdk.CommandExitError);
        assert.match(full.stderr, /No space left on device/);
        try {
          const big = new Blob([new Uint8Array(8 * 2 ** 20)]);
          await rejects(files.write('no-room', big), bed.sdk.NotEnoughSpaceError, /space/);
          assert.equal(await files.exists('no-room'), false);
        } finally {
          await commands.run('rm -f /fill*', { user: 'root' });
        }
        await files.write('room', 'x');
        assert.equal(await files.read('room'), 'x');
      },
    },
    {
      name: 'too many requests of one sandbox at once: RateLimitError',
      async run(bed) {
        const { commands, files } = await bed.main();
        const handles = await Promise.all(
          Array.from({ length: MAX_CONNECTIONS }, () =>
            commands.run('exec sleep 300', { background: true, timeoutMs: 0 }).catch(() => undefined),
          ),
        );
        try {
          await rejects(files.read('/etc/hostname'), classOf(bed, 'RateLimitError', '2.45.0'), /429|rate limited/i);
        } finally {
          await Promise.all(handles.map((handle) => handle?.disconnect()));
        }
        await commands.run('pkill sleep || true');
        assert.equal((await commands.run('echo well')).stdout, 'well\n');
      },
    },
    {
      name: 'no room for another sandbox: ServiceBusyError',
      async run(bed) {
        await bed.full();
        const call = bed.sdk.Sandbox.create('base', bed.options);
        await rejects(call, classOf(bed, 'ServiceBusyError', '2.51.0'), /limits\.max_sandboxes|no room/);
      },
    },
  ],
};

export const unserved: Group<SdkBed> = {
  title: 'What this node does not serve yet is refused by name, never ignored',
  scenarios: [
    {
      name: 'egress rules, volumes, an MCP gateway: 400 with the field',
      since: '2.23.0',
      async run(bed) {
        const { Sandbox, SandboxError } = bed.sdk;
        const create = (more: object) => Sandbox.create('base', { ...bed.options, ...more });
        await rejects(create({ network: { allowOut: ['192.0.2.1'] } }), SandboxError, /^400: body\.network\.allowOut/);
        await rejects(create({ network: { denyOut: ['192.0.2.1'] } }), SandboxError, /^400: body\.network\.denyOut/);
        await rejects(create({ volumeMounts: { '/v': 'some' } }), SandboxError, /^400: body\.volumeMounts/);
        await rejects(create({ mcp: { browserbase: {} } }), SandboxError, /^400: body\.mcp/);
      },
    },
    {
      name: 'egress proxy, egress headers, workload identity: 400 with the field',
      since: '2.45.0',
      async run(bed) {
        const { Sandbox, SandboxError } = bed.sdk;
        const create = (more: object) => Sandbox.create('base', { ...bed.options, ...more });
        const egressProxy = { address: '192.0.2.1:1080' };
        await rejects(create({ network: { egressProxy } }), SandboxError, /^400: body\.network\.egressProxy/);
        const rules = { 'a.test': [{ transform: { headers: { a: 'b' } } }] };
        await rejects(create({ network: { rules } }), SandboxError, /^400: body\.network\.rules/);
        const iam = { tokens: { t: { audience: 'a', tokenType: 'jwt' } } };
        await rejects(create({ iam }), SandboxError, /^400: body\.iam/);
      },
    },
    {
      name: 'changes of egress rules: told by name',
      since: '2.45.0',
      async run(bed) {
        const sandbox = await bed.main();
        await assert.rejects(sandbox.updateNetwork({ allowOut: ['192.0.2.1'] }), /501: .*egress/);
      },
    },
  ],
};
