import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

// Writes packages/contracts/envd/gen from the protos beside it; the result depends on nothing but them and the pinned
// tools, so running it again must leave no difference. It lives here because contracts do no I/O.
const root = join(import.meta.dirname, '../../..');
const folder = join(root, 'packages/contracts/envd');
const tools = join(root, 'node_modules/.bin');
const template = {
  version: 'v2',
  clean: true,
  plugins: [
    {
      local: join(tools, 'protoc-gen-es'),
      out: join(folder, 'gen'),
      opt: ['target=ts', 'import_extension=ts', 'erasable_syntax=true'],
    },
  ],
};
// The plugin is started through its #! line: it must run under this Node, not under whichever stands first in PATH.
const env = { ...process.env, PATH: `${join(process.execPath, '..')}:${process.env.PATH ?? ''}` };
execFileSync(join(tools, 'buf'), ['generate', folder, '--template', JSON.stringify(template)], {
  stdio: 'inherit',
  env,
});
