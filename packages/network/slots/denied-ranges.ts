import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { type Cidr, formatCidr, parseCidr } from '../addresses/ipv4.ts';

/** What no guest reaches, whatever its policy allows: private networks, link-local with metadata services, and no unicast. */
const ALWAYS_DENIED = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '224.0.0.0/4',
  '240.0.0.0/4',
];

/**
 * The static list with the instance's own range and the operator's additions. An addition may have host bits set
 * (`192.0.2.7/24` stands for its network).
 * @throws AenvError `config_invalid`
 */
export function deniedRanges(own: Cidr, additions: readonly string[]): readonly string[] {
  const extra = additions.map((text) => {
    const range = parseCidr(text, 'cleared');
    if (range === undefined) {
      throw new AenvError('config_invalid', `network.always_denied_cidrs: ${JSON.stringify(text)} is no IPv4 range`);
    }
    return formatCidr(range);
  });
  return [...new Set([...ALWAYS_DENIED, formatCidr(own), ...extra])];
}
