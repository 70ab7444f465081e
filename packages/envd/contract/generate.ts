import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

const root = join(import.meta.dirname, '../../..');
const protos = join(root, 'packages/contracts/envd');

/**
 * Writes the code of envd's protos into `out`. The result depends on nothing but the protos and the pinned tools, so that
 * running it again leaves no difference. It stands here because the contracts do no I/O.
 */
export function generateEnvdContract(out: string): void {
  const tools = join(root, 'node_modules/.bin');
  const options = ['target=ts', 'import_extension=ts', 'erasable_syntax=true'];
  const template = {
    version: 'v2',
    clean: true,
    plugins: [{ local: join(tools, 'protoc-gen-es'), out, opt: options }],
  };
  // The plugin is started through its #! line: it must run under this Node, not under whichever stands first in PATH.
  const env = { ...process.env, PATH: `${join(process.execPath, '..')}:${process.env.PATH ?? ''}` };
  execFileSync(join(tools, 'buf'), ['generate', protos, '--template', JSON.stringify(template)], {
    stdio: 'inherit',
    env,
  });
}

if (import.meta.main) generateEnvdContract(join(protos, 'gen'));
