import { Sandbox } from 'e2b';
import type { TestDaemon } from './daemon.ts';

/** A sandbox of a test, made by the published SDK and killed when the test leaves its block. */
export async function createSandbox(
  daemon: TestDaemon,
  options: Parameters<typeof Sandbox.create>[1] = {},
  template = 'base',
): Promise<Sandbox & AsyncDisposable> {
  const sandbox = await Sandbox.create(template, {
    apiUrl: daemon.url,
    sandboxUrl: daemon.url,
    apiKey: daemon.apiKey,
    timeoutMs: 600_000,
    // Under emulation, on a busy machine, a guest takes its time.
    requestTimeoutMs: 180_000,
    ...options,
  });
  return Object.assign(sandbox, {
    async [Symbol.asyncDispose]() {
      await sandbox.kill();
    },
  });
}

/** What a shell command in the sandbox prints, whatever its exit code; stderr is joined to it. */
export async function shell(sandbox: Sandbox, command: string, user: 'root' | 'user' = 'root'): Promise<string> {
  const { stdout } = await sandbox.commands.run(`{ ${command}\n} 2>&1 || true`, { user, timeoutMs: 60_000 });
  return stdout;
}
