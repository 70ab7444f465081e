import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { Code, ConnectError, type Interceptor } from '@connectrpc/connect';
import { describeError, type Log } from '../server/log.ts';

// By status, because there are many codes of ours and few of Connect's.
const CODES: Readonly<Record<number, Code>> = {
  400: Code.InvalidArgument,
  401: Code.Unauthenticated,
  403: Code.PermissionDenied,
  404: Code.NotFound,
  409: Code.AlreadyExists,
  413: Code.ResourceExhausted,
  501: Code.Unimplemented,
  503: Code.Unavailable,
};

/** The error as Connect clients get it. What nobody foresaw is logged, and the client learns only that it happened. */
export function toConnectError(error: unknown, log: Log): ConnectError {
  if (error instanceof ConnectError) return error;
  const ours = AenvError.from(error);
  if (ours.code === 'internal' && !(error instanceof AenvError))
    log('error', 'rpc failed', { error: describeError(error) });
  return new ConnectError(ours.message, CODES[ours.status] ?? Code.Internal, undefined, undefined, ours.cause);
}

/** Turns our errors into Connect's, for calls and for streams. */
export function errorInterceptor(log: Log): Interceptor {
  return (next) => async (request) => {
    try {
      const response = await next(request);
      if (!response.stream) return response;
      return { ...response, message: convertErrors(response.message, log) };
    } catch (error) {
      throw toConnectError(error, log);
    }
  };
}

async function* convertErrors<T>(messages: AsyncIterable<T>, log: Log): AsyncIterable<T> {
  try {
    yield* messages;
  } catch (error) {
    throw toConnectError(error, log);
  }
}
