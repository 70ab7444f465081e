import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Logger } from '@aenv/platform/observability/logger.ts';
import type { Counter, Metrics } from '@aenv/platform/observability/metrics.ts';
import type { EgressPolicy } from '../slots/contract.ts';
import { CLASS_IN, type Message, RCODE, readMessage, TYPE, withId, writeReply } from './message.ts';
import type { Resolver, Transport } from './resolver.ts';
import { listenTcp, type TcpListener } from './tcp-listener.ts';
import { listenUdp, type UdpListener } from './udp-listener.ts';

export interface DnsForwarderOptions {
  readonly resolver: Resolver;
  /** the policy of the slot with this address, undefined when it is no slot in use */
  readonly policyOf: (address: string) => EgressPolicy | undefined;
  readonly log: Logger;
  readonly metrics: Metrics;
}

/** What the forwarder takes from one slot, and from all of them together. */
const LIMITS = { perSlot: 64, total: 2_048 };

/** What fits into a packet on any path (the value of DNS Flag Day 2020). */
const MAX_UDP_ANSWER = 1_232;
const MIN_UDP_ANSWER = 512;

/**
 * Answers the guests' questions for names. Guests know one address for it, the slot's namespace translates that to here,
 * so the source address tells which slot asks. Questions are made anew for the upstream; answers are passed on as they
 * are, when they are well-formed and answer the question.
 *
 * A slot without internet gets NXDOMAIN and nothing is asked upstream: among the codes it is the one that every stub
 * resolver takes for final (musl waits until its timeout on REFUSED). It has no SOA record, so nobody caches it.
 */
export class DnsForwarder {
  readonly #options: DnsForwarderOptions;
  readonly #stopping = new AbortController();
  readonly #outstanding = new Map<string, number>();
  readonly #queries: Counter;
  #total = 0;
  #udp: UdpListener | undefined;
  #tcp: TcpListener | undefined;

  constructor(options: DnsForwarderOptions) {
    this.#options = options;
    this.#queries = options.metrics.counter('aenv_dns_queries_total', 'Questions of guests by outcome', ['outcome']);
  }

  /**
   * Listens on UDP and TCP at `port`, or at another one when some process of the host has taken it on all addresses:
   * guests do not see the difference, because their namespace translates the port too.
   * @returns the port
   */
  async listen(address: string, port: number): Promise<number> {
    const answer = this.#answer.bind(this);
    const { log } = this.#options;
    for (const candidate of [port, 0, 0, 0]) {
      try {
        this.#tcp = await listenTcp(address, candidate, answer, log);
        this.#udp = await listenUdp(address, this.#tcp.port, answer, log);
        return this.#tcp.port;
      } catch (error) {
        await this.#tcp?.close();
        this.#tcp = undefined;
        if (!(error instanceof Error && 'code' in error && error.code === 'EADDRINUSE')) throw error;
      }
    }
    throw new AenvError('network_exhausted', `no free port for the DNS forwarder on ${address}`);
  }

  /** Ends questions under way without an answer. Idempotent. */
  async close(): Promise<void> {
    this.#stopping.abort(new AenvError('shutting_down', 'the DNS forwarder is shutting down'));
    const listeners = [this.#udp, this.#tcp];
    this.#udp = undefined;
    this.#tcp = undefined;
    await Promise.all(listeners.map((listener) => listener?.close()));
  }

  /** The answer to one message, or undefined when it deserves none. Never rejects. */
  async #answer(bytes: Uint8Array, client: string, transport: Transport): Promise<Buffer | undefined> {
    const query = readMessage(bytes);
    // Answers to answers could go round in circles.
    if (query === undefined || query.isResponse) return this.#count('malformed', undefined);
    const udpSize = udpLimit(query);
    const reply = (rcode: number) => writeReply(query, rcode, { udpSize: MAX_UDP_ANSWER });

    const policy = this.#options.policyOf(client);
    if (policy === undefined) return this.#count('stranger', reply(RCODE.refused));
    if (query.opcode !== 0) return this.#count('unsupported', reply(RCODE.notImp));
    const [question] = query.questions;
    if (question === undefined) return this.#count('malformed', reply(RCODE.formErr));
    if (!policy.internet) return this.#count('denied', reply(RCODE.nxDomain));
    // Zone transfers come as many messages, and no guest has business with them.
    if (question.class !== CLASS_IN || question.type === TYPE.AXFR || question.type === TYPE.IXFR) {
      return this.#count('unsupported', reply(RCODE.refused));
    }

    const mine = this.#outstanding.get(client) ?? 0;
    if (mine >= LIMITS.perSlot || this.#total >= LIMITS.total) return this.#count('limited', reply(RCODE.servFail));
    this.#outstanding.set(client, mine + 1);
    this.#total += 1;
    try {
      const edns = query.edns && {
        udpSize: transport === 'udp' ? udpSize : MAX_UDP_ANSWER,
        dnssecOk: query.edns.dnssecOk,
      };
      const { recursionDesired, authenticData, checkingDisabled } = query;
      const answer = await this.#options.resolver.resolve(
        { question, recursionDesired, authenticData, checkingDisabled, edns },
        transport,
        this.#stopping.signal,
      );
      // The policy may have changed while the upstream was asked.
      if (this.#options.policyOf(client)?.internet !== true) return this.#count('denied', reply(RCODE.nxDomain));
      if (answer === undefined) return this.#count('failed', reply(RCODE.servFail));
      if (transport === 'udp' && answer.bytes.length > udpSize) {
        return this.#count('answered', writeReply(query, RCODE.noError, { truncated: true, udpSize: MAX_UDP_ANSWER }));
      }
      return this.#count('answered', withId(answer.bytes, query.id));
    } catch (error) {
      this.#options.log.warn('a question for a name failed', { reason: AenvError.from(error).message });
      return this.#count('failed', reply(RCODE.servFail));
    } finally {
      this.#total -= 1;
      const left = (this.#outstanding.get(client) ?? 1) - 1;
      if (left > 0) this.#outstanding.set(client, left);
      else this.#outstanding.delete(client);
    }
  }

  #count(outcome: string, answer: Buffer | undefined): Buffer | undefined {
    this.#queries.add(1, { outcome });
    return answer;
  }
}

function udpLimit(query: Message): number {
  return Math.min(Math.max(query.edns?.udpSize ?? 0, MIN_UDP_ANSWER), MAX_UDP_ANSWER);
}
