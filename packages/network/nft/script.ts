/** One chain of an nft table: a base chain when it has a hook, else one that is jumped to. */
export interface Chain {
  /** for example `type filter hook input priority filter; policy accept;` */
  readonly hook?: string;
  readonly rules: readonly string[];
}

/**
 * An nft script (nft(8)) that makes the chains of an inet table hold exactly these rules, whatever they held before.
 * nft applies a script as one transaction, so there is no moment with half of the rules.
 * @param sets lines for named sets; they must not exist yet
 */
export function tableScript(
  table: string,
  chains: Readonly<Record<string, Chain>>,
  sets: readonly string[] = [],
): string {
  const entries = Object.entries(chains);
  return [
    `table inet ${table} {`,
    ...sets,
    ...entries.flatMap(([name, chain]) => block(name, chain.hook === undefined ? [] : [chain.hook])),
    '}',
    ...entries.map(([name]) => `flush chain inet ${table} ${name}`),
    `table inet ${table} {`,
    ...entries.flatMap(([name, chain]) => block(name, chain.rules)),
    '}',
    '',
  ].join('\n');
}

function block(name: string, lines: readonly string[]): string[] {
  return [`  chain ${name} {`, ...lines.map((line) => `    ${line}`), '  }'];
}

/**
 * The one way in which traffic is refused: a reset for TCP, "administratively prohibited" for all else. Both reach the
 * sender at once, so that nobody waits for a timeout, and they look the same whatever the reason.
 */
export const REFUSE: Chain = {
  rules: ['meta l4proto tcp reject with tcp reset', 'reject with icmp type admin-prohibited'],
};
