import assert from 'node:assert/strict';
import test from 'node:test';
import { formatCidr } from '../addresses/ipv4.ts';
import { rangesOfAddresses, rangesOfRoutes } from './taken.ts';

test('addresses stand for the whole network that they are in', () => {
  const links = [
    { ifname: 'lo', addr_info: [{ family: 'inet', local: '127.0.0.1', prefixlen: 8 }] },
    {},
    { ifname: 'eth0', addr_info: [{ family: 'inet', local: '192.0.2.17', prefixlen: 24 }] },
  ];
  assert.deepEqual(rangesOfAddresses(links).map(formatCidr), ['127.0.0.0/8', '192.0.2.0/24']);
});

test('routes count, whatever their kind and table; those that mean everything do not', () => {
  const routes = [
    { dst: 'default', gateway: '192.0.2.1' },
    { dst: '0.0.0.0/1', dev: 'tun0' },
    { dst: '128.0.0.0/1', dev: 'tun0' },
    { dst: '10.200.0.0/16', dev: 'wg0', table: '51820' },
    { type: 'unreachable', dst: '10.201.0.0/20', metric: 183_454_438 },
    { type: 'local', dst: '192.0.2.17', table: 'local' },
  ];
  assert.deepEqual(rangesOfRoutes(routes).map(formatCidr), ['10.200.0.0/16', '10.201.0.0/20', '192.0.2.17/32']);
});

test('output of another shape gives nothing', () => {
  for (const value of [undefined, null, {}, 'x', [1, null]]) {
    assert.deepEqual([rangesOfAddresses(value), rangesOfRoutes(value)], [[], []]);
  }
});
