import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Output } from '../terminal/output.ts';
import type { Finding } from './check.ts';
import { type CheckContext, runChecks } from './checks.ts';

export interface DoctorOptions {
  readonly fix: boolean;
  readonly json: boolean;
  readonly output: Output;
}

/**
 * `aenv doctor`: checks the host, with `fix` mends what it can and checks again, prints the findings.
 * @returns whether nothing failed
 */
export async function doctor(context: CheckContext, options: DoctorOptions): Promise<boolean> {
  let findings = await runChecks(context);
  if (options.fix) {
    for (const finding of findings) await mend(finding, options.output);
    findings = await runChecks(context);
  }
  const good = findings.every(({ status }) => status !== 'fail');
  if (options.json) {
    const checks = findings.map(({ mend: _, ...rest }) => rest);
    options.output.out(JSON.stringify({ ok: good, checks }, null, 2));
  } else {
    printTable(findings, options.output);
  }
  return good;
}

async function mend(finding: Finding, output: Output): Promise<void> {
  if (finding.status === 'ok' || finding.mend === undefined) return;
  output.err(`mending ${finding.name}: ${finding.detail}`);
  try {
    await finding.mend();
  } catch (error) {
    // The check after this one says that it still fails; why is said here.
    output.err(`mending ${finding.name} failed: ${AenvError.from(error).message}`);
  }
}

function printTable(findings: readonly Finding[], output: Output): void {
  const width = Math.max(...findings.map(({ name }) => name.length));
  for (const { status, name, detail, remedy } of findings) {
    output.out(`${status.padEnd(4)}  ${name.padEnd(width)}  ${detail}`);
    if (status !== 'ok' && remedy !== undefined) output.out(`${' '.repeat(8 + width)}-> ${remedy}`);
  }
  const failed = findings.filter(({ status }) => status === 'fail').length;
  if (failed > 0) output.out(`${failed} of ${findings.length} checks failed.`);
}
