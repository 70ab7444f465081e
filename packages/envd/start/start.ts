/**
 * Starts envd in a guest: its bundle, with the code that V8 made of it when the drive was built, so that a guest does not
 * compile it anew; under emulation that is half a second. Node's own cache of compiled code does not do: it is tied to
 * the features of the processor that filled it, although the code itself, for V8's interpreter, is the same for all.
 */
import { existsSync, readFileSync } from 'node:fs';
import { GUEST_LAYOUT } from '@aenv/contracts/guest/layout.ts';
import { stderrLog } from '../server/log.ts';
import { loadProgram } from './program.ts';

const { program: bundle, programCode } = GUEST_LAYOUT;
const program = loadProgram(bundle, existsSync(programCode) ? readFileSync(programCode) : undefined);
if (program.script.cachedDataRejected === true) stderrLog('warn', 'the code on the tools drive is not of this engine');
const { main } = program.run() as unknown as typeof import('../main.ts');
main();
