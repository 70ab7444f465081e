import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import { build } from 'esbuild';

/**
 * Bundles a program with all that it imports into one CommonJS file.
 * @throws AenvError `asset_failed` with the bundler's first messages
 */
export async function bundle(entry: string, target: string, outfile: string): Promise<void> {
  try {
    await build({
      entryPoints: [entry],
      outfile,
      bundle: true,
      platform: 'node',
      format: 'cjs',
      target,
      minify: true,
      legalComments: 'none',
      logLevel: 'silent',
      // of the two forms that packages offer, the one that the program itself is written in
      conditions: ['import', 'node'],
      mainFields: ['module', 'main'],
    });
  } catch (error) {
    const message = error instanceof Error ? error.message.split('\n').slice(0, 8).join('\n') : String(error);
    throw new AenvError('asset_failed', `envd could not be bundled: ${message}`, { cause: error });
  }
}
