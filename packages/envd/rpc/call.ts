import type {
  DescMethod,
  DescMethodClientStreaming,
  DescMethodServerStreaming,
  DescMethodUnary,
  DescService,
  MessageInitShape,
  MessageShape,
} from '@bufbuild/protobuf';

/** What a method may know of the call that it serves, besides the message. */
export interface Call {
  /** @param name in lower case */
  header(name: string): string | undefined;
  /** `ms` until the client's deadline; undefined when it has none */
  timeoutMs(): number | undefined;
  /** aborted when the client has left */
  readonly signal: AbortSignal;
}

type Handler<M extends DescMethod> =
  M extends DescMethodUnary<infer I, infer O>
    ? (request: MessageShape<I>, call: Call) => MessageInitShape<O> | Promise<MessageInitShape<O>>
    : M extends DescMethodServerStreaming<infer I, infer O>
      ? (request: MessageShape<I>, call: Call) => AsyncIterable<MessageInitShape<O>>
      : M extends DescMethodClientStreaming<infer I, infer O>
        ? (requests: AsyncIterable<MessageShape<I>>, call: Call) => Promise<MessageInitShape<O>>
        : never;

/** The methods of a service; those that are missing answer `unimplemented`. Failures are AenvErrors. */
export type Implementation<S extends DescService> = {
  readonly [K in keyof S['method']]?: Handler<S['method'][K]>;
};
