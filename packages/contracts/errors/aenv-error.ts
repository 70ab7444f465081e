import { ERRORS, type ErrorCode } from './registry.ts';

export interface AenvErrorOptions {
  /** replaces the registry's remediation where the call site knows better */
  readonly remediation?: string;
  /** what went wrong underneath; logged, never sent to a client */
  readonly cause?: unknown;
  /** further members of the JSON body, for example `sandboxId` */
  readonly details?: Readonly<Record<string, unknown>>;
}

/** The JSON form of an error. `code` is the HTTP status because E2B clients read it so. */
export interface ErrorBody {
  readonly code: number;
  readonly message: string;
  readonly error_code: ErrorCode;
  readonly remediation: string;
  readonly [detail: string]: unknown;
}

/** The one error class of the product. The message is for people; programs look at `code`. */
export class AenvError extends Error {
  override readonly name = 'AenvError';
  readonly code: ErrorCode;
  readonly status: number;
  readonly remediation: string;
  readonly retryable: boolean;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(code: ErrorCode, message: string, options: AenvErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    const spec = ERRORS[code];
    this.code = code;
    this.status = spec.status;
    this.remediation = options.remediation ?? spec.remediation;
    this.retryable = spec.retryable ?? false;
    this.details = options.details ?? {};
  }

  /** The error as it is, or an `internal` one around whatever was thrown. A full disk is always `no_space`. */
  static from(error: unknown, message = 'unexpected fault'): AenvError {
    if (error instanceof AenvError) return error;
    if (error instanceof Error && 'code' in error && error.code === 'ENOSPC') {
      return new AenvError('no_space', error.message, { cause: error });
    }
    return new AenvError('internal', message, { cause: error });
  }

  toBody(): ErrorBody {
    return {
      ...this.details,
      code: this.status,
      message: this.message,
      error_code: this.code,
      remediation: this.remediation,
    };
  }
}
