/** What a test asks of the process that plays a guest or a machine outside: one JSON line each way. */
export type AgentRequest =
  /** Connects and sends a line, or these bytes; the outcome is what came back, or why not. */
  | { readonly do: 'dial'; readonly host: string; readonly port: number; readonly hex?: string }
  /** Sends a datagram from a connected socket. */
  | { readonly do: 'datagram'; readonly host: string; readonly port: number; readonly hex: string }
  /** Opens a flow over which the other side sends a byte every 50 ms. */
  | {
      readonly do: 'open';
      readonly name: string;
      readonly host: string;
      readonly port: number;
      readonly kind: FlowKind;
    }
  | { readonly do: 'flow'; readonly name: string }
  /** Serves TCP and UDP on all addresses; every answer begins with the address that the client was seen with. */
  | { readonly do: 'serve'; readonly port: number }
  /** How many datagrams the UDP servers of this agent have received. */
  | { readonly do: 'seen' }
  /** Serves DNS on port 53; all names have the address 192.0.2.55. */
  | { readonly do: 'serve-names'; readonly address: string };

/** `talk`: a TCP connection on which this side sends as well; `listen`: one on which it does not; `udp`: the same in UDP */
export type FlowKind = 'talk' | 'listen' | 'udp';

export interface Outcome {
  /** `answered`, or the error's code, or `timeout` */
  readonly result: string;
  /** the line that came back, or bytes in hexadecimal digits when bytes were sent */
  readonly data: string;
  readonly ms: number;
}

export interface FlowState {
  /** bytes received so far */
  readonly received: number;
  /** `open`, `ended`, or the error's code */
  readonly state: string;
}

/** How long an agent waits for an answer, in ms: longer than what counts as fast. */
export const PATIENCE_MS = 1_500;
