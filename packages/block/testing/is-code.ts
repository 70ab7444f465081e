import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { ErrorCode } from '@aenv/contracts/errors/registry.ts';

/** For `assert.rejects` and `assert.throws`: an error of the product with this code. */
export function isCode(code: ErrorCode): (error: unknown) => true {
  return (error) => {
    if (error instanceof AenvError && error.code === code) return true;
    throw error;
  };
}
