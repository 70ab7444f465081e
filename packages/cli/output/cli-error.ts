/** A failure that the user is told in a line, with what to do about it; no stack. */
export class CliError extends Error {
  override readonly name = 'CliError';
  readonly remediation: string | undefined;
  readonly exitCode: number;

  constructor(message: string, remediation?: string, exitCode = 1) {
    super(message);
    this.remediation = remediation;
    this.exitCode = exitCode;
  }
}
