/**
 * What is said of an error code.
 *
 * `status` is the HTTP status that an API surface answers with, `remediation` what a person or an agent can do about it,
 * `retryable` whether the same request may succeed later without any change.
 */
export interface ErrorSpec {
  readonly status: number;
  readonly summary: string;
  readonly remediation: string;
  readonly retryable?: boolean;
}
