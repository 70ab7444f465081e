import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';

const CERTIFICATE = /CERT|SELF_SIGNED|UNABLE_TO_|CRL|HOSTNAME_MISMATCH|INVALID_CA|PATH_LENGTH|INVALID_PURPOSE/;
const NOT_TLS = /^(EPROTO|ERR_SSL_.*)$/;

const PLAIN: Readonly<Record<string, string>> = {
  ENOTFOUND: 'the name has no address',
  EAI_AGAIN: 'the name server does not answer',
  ECONNREFUSED: 'nothing listens there',
  ECONNRESET: 'the connection was cut',
  EHOSTUNREACH: 'there is no way to the host',
  ENETUNREACH: 'there is no way to the network',
  ETIMEDOUT: 'the connection was not made in time',
  UND_ERR_CONNECT_TIMEOUT: 'the connection was not made in time',
  UND_ERR_HEADERS_TIMEOUT: 'no answer came in time',
  UND_ERR_BODY_TIMEOUT: 'the answer stopped in the middle',
  UND_ERR_SOCKET: 'the connection was cut',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'the connection was cut',
};

/** What a failed request means. The URL is not in the message, since its query may be a secret. */
export function requestFailure(host: string, error: unknown): AenvError {
  if (error instanceof AenvError) return error;
  const code = codeOf(error);
  if (NOT_TLS.test(code)) {
    return new AenvError('registry_unavailable', `${host}: does not speak TLS (${code})`, {
      remediation: 'If it is meant to be reached by plain HTTP, list it in `registry.insecure`.',
      details: { reason: 'not_tls' },
      cause: error,
    });
  }
  if (CERTIFICATE.test(code)) {
    return new AenvError('registry_untrusted', `${host}: its certificate is not trusted (${code})`, { cause: error });
  }
  const reason = PLAIN[code] ?? (code === '' ? 'the request failed' : `the request failed (${code})`);
  return new AenvError('registry_unavailable', `${host}: ${reason}`, { details: { reason: code }, cause: error });
}

/** What a server does not do now, it will not do a moment later. */
const LASTING = ['not_tls', 'no_ranges', 'no_https'];

/** Whether the same request may work a moment later. */
export function isTransient(error: unknown): boolean {
  if (!(error instanceof AenvError)) return false;
  if (error.code === 'registry_rate_limited') return true;
  return error.code === 'registry_unavailable' && !LASTING.includes(String(error.details.reason));
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return '';
  if ('code' in error && typeof error.code === 'string') return error.code;
  // One error for each address that was tried.
  if (error instanceof AggregateError) return codeOf(error.errors[0]);
  return error.cause === undefined ? '' : codeOf(error.cause);
}
