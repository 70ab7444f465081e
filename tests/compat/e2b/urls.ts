import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type RawData, WebSocket } from 'ws';
import { GUEST_SERVER } from '../../e2e/guest-server.ts';
import { until } from '../../harness/until.ts';
import type { Group } from '../support/scenario.ts';
import type { Sandbox, SdkBed } from './bed.ts';

const PORT = 8080;

/** Starts a server in the sandbox and waits until it answers from outside; gives its host. */
async function serve(sandbox: Sandbox, headers: Record<string, string> = {}): Promise<string> {
  const host = sandbox.getHost(PORT);
  const answers = async () => (await fetch(`https://${host}/hello`, { headers })).status === 200;
  if (await answers()) return host;
  await sandbox.files.write('server.py', GUEST_SERVER);
  await sandbox.commands.run(`python3 server.py 127.0.0.1 ${PORT}`, { background: true, timeoutMs: 0 });
  await until(answers, { timeoutMs: 60_000, what: 'the server in the sandbox answers' });
  return host;
}

export const urls: Group<SdkBed> = {
  title: 'Addresses',
  scenarios: [
    {
      name: 'a signed URL to download, without any header',
      async run(bed) {
        const sandbox = await bed.main();
        await sandbox.files.write('signed ü.txt', 'signed');
        for (const options of [{}, { useSignatureExpiration: 60 }, { user: 'user' }]) {
          const answer = await fetch(await sandbox.downloadUrl('signed ü.txt', options));
          assert.deepEqual([answer.status, await answer.text()], [200, 'signed'], JSON.stringify(options));
        }
      },
    },
    {
      name: 'a signed URL to upload, without any header',
      async run(bed) {
        const sandbox = await bed.main();
        const form = new FormData();
        form.append('file', new Blob(['uploaded']), 'ignored.txt');
        const url = await sandbox.uploadUrl('up/target.txt', { useSignatureExpiration: 60 });
        const answer = await fetch(url, { method: 'POST', body: form });
        assert.deepEqual(await answer.json(), [{ name: 'target.txt', path: '/home/user/up/target.txt', type: 'file' }]);
        assert.equal(await sandbox.files.read('up/target.txt'), 'uploaded');
      },
    },
    {
      name: 'a signed URL that was altered, or is over: 401',
      async run(bed) {
        const sandbox = await bed.main();
        await sandbox.files.write('signed.txt', 'signed');
        const url = new URL(await sandbox.downloadUrl('signed.txt', { useSignatureExpiration: 60 }));
        const over = new URL(await sandbox.downloadUrl('signed.txt', { useSignatureExpiration: -60 }));
        const answer = await fetch(over);
        assert.deepEqual(await answer.json(), { code: 401, message: 'signature is already expired' });
        assert.equal(answer.status, 401);
        for (const [name, value] of [
          ['path', '/etc/passwd'],
          ['signature', `${url.searchParams.get('signature')?.slice(0, -1)}`],
          ['signature_expiration', '99999999999'],
        ] as const) {
          const altered = new URL(url);
          altered.searchParams.set(name, value);
          assert.equal((await fetch(altered)).status, 401, name);
        }
      },
    },
    {
      name: 'getHost: a server in the sandbox by HTTP',
      async run(bed) {
        const sandbox = await bed.main();
        const host = await serve(sandbox);
        assert.equal(host, `${PORT}-${sandbox.sandboxId}.${bed.host.domain}`);
        assert.equal(await (await fetch(`https://${host}/hello`)).text(), 'hello');
        const seen = (await (await fetch(`https://${host}/headers`)).json()) as Record<string, string>;
        assert.deepEqual([seen.host, seen['x-forwarded-proto']], [host, 'https']);
      },
    },
    {
      name: 'getHost: a server in the sandbox by WebSocket',
      async run(bed) {
        const socket = new WebSocket(`wss://${await serve(await bed.main())}/ws`, ['chat']);
        await once(socket, 'open');
        assert.equal(socket.protocol, 'chat');
        const message = Buffer.alloc(100_000, 7);
        const echoed = once(socket, 'message') as Promise<[RawData]>;
        socket.send(message);
        assert.ok(message.equals((await echoed)[0] as Buffer));
        const closed = once(socket, 'close');
        socket.close(4001);
        assert.equal((await closed)[0], 4001);
      },
    },
    {
      name: 'a port without a server: 502 in JSON that says so',
      async run(bed) {
        const sandbox = await bed.main();
        const answer = await fetch(`https://${sandbox.getHost(9999)}/`);
        assert.equal(answer.status, 502);
        const { message, code, port } = (await answer.json()) as Record<string, unknown>;
        assert.deepEqual([message, code, port], ['The sandbox is running but port is not open', 502, 9999]);
      },
    },
    {
      name: 'a private sandbox: 403 without its traffic token, 200 with it, the host masked',
      since: '2.23.0',
      async run(bed) {
        const sandbox = await bed.second();
        const headers = { 'e2b-traffic-access-token': sandbox.trafficAccessToken ?? '' };
        const host = await serve(sandbox, headers);
        assert.equal((await fetch(`https://${host}/hello`)).status, 403);
        const wrong = { 'e2b-traffic-access-token': 'wrong' };
        assert.equal((await fetch(`https://${host}/hello`, { headers: wrong })).status, 403);
        const seen = (await (await fetch(`https://${host}/headers`, { headers })).json()) as Record<string, string>;
        assert.deepEqual([seen.host, seen['x-forwarded-host']], [`localhost:${PORT}`, host]);
        assert.equal(seen['e2b-traffic-access-token'], undefined);
        const again = await bed.sdk.Sandbox.connect(sandbox.sandboxId, bed.options);
        assert.equal(again.trafficAccessToken, sandbox.trafficAccessToken);
      },
    },
    {
      name: 'a sandbox without internet: refused at once, names too',
      async run(bed) {
        const sandbox = await bed.second();
        const script = [
          'import socket, time',
          'begin = time.time()',
          'for target in [("192.0.2.1", 80), ("example.com", 80)]:',
          '    try:',
          '        socket.create_connection(target, 10)',
          '        print("connected")',
          '    except OSError as error:',
          '        print("refused")',
          'print("fast" if time.time() - begin < 5 else "slow")',
        ].join('\n');
        await sandbox.files.write('net.py', script);
        assert.equal((await sandbox.commands.run('python3 net.py')).stdout, 'refused\nrefused\nfast\n');
      },
    },
  ],
};
