import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseWrk } from './wrk.ts';

const OUTPUT = `Running 2s test @ http://10.200.0.6:8080/
  1 threads and 8 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     2.05ms    1.21ms  21.40ms   92.11%
    Req/Sec     4.01k   211.32     4.40k    75.00%
  Latency Distribution
     50%  850.00us
     75%    2.20ms
     90%    2.90ms
     99%    1.01s
  7983 requests in 2.00s, 701.63KB read
Requests/sec:   3990.12
Transfer/sec:    350.69KB
`;

test('rate and latencies are read in their units', () => {
  assert.deepEqual(parseWrk(OUTPUT), { requestsPerSecond: 3990.12, p50: 0.85, p99: 1010 });
});

test('a run with bad answers is none', () => {
  const bad = (line: string) => OUTPUT.replace('Requests/sec', `${line}\nRequests/sec`);
  assert.throws(() => parseWrk(bad('  Non-2xx or 3xx responses: 12')), /12/);
  assert.throws(() => parseWrk(bad('  Socket errors: connect 0, read 3, write 0, timeout 0')), /read 3/);
  assert.throws(() => parseWrk('unable to connect'), /something else/);
});
