import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { DescMessage, DescService, Message } from '@bufbuild/protobuf';
import type { Call, Implementation } from './call.ts';

/** What a message is made from. */
export type Answer = Record<string, unknown>;

interface MethodBase {
  readonly name: string;
  readonly input: DescMessage;
  readonly output: DescMessage;
}

/** A method without its types, as the servers of protocols see it. */
export type Method = MethodBase &
  (
    | { readonly kind: 'unary'; readonly handle: (request: Message, call: Call) => Answer | Promise<Answer> }
    | {
        readonly kind: 'server_streaming';
        readonly handle: (request: Message, call: Call) => AsyncIterable<Answer>;
        readonly encode?: Encoder | undefined;
      }
    | {
        readonly kind: 'client_streaming';
        readonly handle: (requests: AsyncIterable<Message>, call: Call) => Promise<Answer>;
        readonly encode?: undefined;
      }
  );

/** Makes the frame of an answer in a quicker way than by its schema. */
export type Encoder = (answer: Answer) => Buffer;

/** All methods of a service by their path. Those without an implementation answer `unimplemented`. */
export function methodsOf<S extends DescService>(
  service: S,
  implementation: Implementation<S>,
  encoders: ReadonlyMap<DescMessage, Encoder> = new Map(),
): Map<string, Method> {
  const methods = new Map<string, Method>();
  for (const { localName, name, methodKind, input, output } of service.methods) {
    const handle = (implementation as Record<string, unknown>)[localName] ?? unimplemented(name);
    const encode = encoders.get(output);
    // The types of the implementation say that handler and kind belong together.
    const method = { name, input, output, kind: methodKind, handle, encode } as unknown as Method;
    methods.set(`/${service.typeName}/${name}`, method);
  }
  return methods;
}

function unimplemented(name: string): () => never {
  return () => {
    throw new AenvError('not_implemented', `method ${name} is not implemented`);
  };
}
