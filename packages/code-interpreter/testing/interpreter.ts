import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';

const MAIN = join(import.meta.dirname, '../guest/main.py');
/** Debian's own, which is the one that guests have. */
const PYTHON = '/usr/bin/python3';

/** A line of the answer to /execute. */
export interface Event {
  readonly type: string;
  readonly text?: string;
  readonly name?: string;
  readonly value?: string;
  readonly traceback?: string;
  readonly execution_count?: number;
  readonly is_main_result?: boolean;
  readonly [mime: string]: unknown;
}

export interface CellOptions {
  readonly language?: string;
  readonly context_id?: string;
  readonly env_vars?: Readonly<Record<string, string>>;
}

/** What came of a cell. */
export interface Cell {
  readonly events: readonly Event[];
  readonly stdout: string;
  readonly stderr: string;
  readonly results: readonly Event[];
  /** text of the main result */
  readonly text: string | undefined;
  readonly error: Event | undefined;
}

/** The server on this host, with a folder of its own; nothing of a sandbox is around it. */
export class TestInterpreter implements AsyncDisposable {
  readonly home: string;
  readonly url: string;
  readonly pid: number;
  readonly #child: ChildProcess;

  private constructor(home: string, child: ChildProcess, port: number) {
    this.home = home;
    this.url = `http://127.0.0.1:${port}`;
    this.pid = child.pid ?? 0;
    this.#child = child;
  }

  /** @param envdPort port of something that plays envd; nobody is asked when absent */
  static async start(env: Readonly<Record<string, string>> = {}, envdPort?: number): Promise<TestInterpreter> {
    const home = await mkdtemp(join(tmpdir(), 'aenvt-interpreter-'));
    const envd = envdPort === undefined ? ['--no-envd'] : ['--envd', String(envdPort)];
    const child = spawn(PYTHON, ['-B', MAIN, '--host', '127.0.0.1', '--port', '0', '--home', home, ...envd], {
      stdio: ['ignore', 'pipe', 'inherit'],
      // The Node of this process is the one that guests get.
      env: { PATH: [dirname(process.execPath), process.env.PATH].join(delimiter), HOME: home, ...env },
    });
    const lines = createInterface({ input: child.stdout });
    const [line] = (await Promise.race([once(lines, 'line'), once(child, 'exit')])) as [unknown];
    const port = Number(/^listening on port (\d+)$/.exec(String(line))?.[1]);
    if (Number.isNaN(port)) throw new Error(`the interpreter did not start: ${line}`);
    return new TestInterpreter(home, child, port);
  }

  /** Runs a cell to its end. */
  async run(code: string, options: CellOptions = {}): Promise<Cell> {
    const answer = await this.post('/execute', { code, ...options });
    if (answer.status !== 200) throw new Error(`${answer.status} ${await answer.text()}`);
    return toCell(await answer.text());
  }

  /** Begins a cell and goes away when it has printed something. */
  async abandon(code: string, options: CellOptions = {}): Promise<void> {
    const controller = new AbortController();
    const answer = await this.post('/execute', { code, ...options }, { signal: controller.signal });
    const reader = answer.body?.getReader();
    for (let text = ''; !text.includes('"stdout"'); )
      text += Buffer.from((await reader?.read())?.value ?? []).toString();
    controller.abort();
    await reader?.closed.catch(() => {});
  }

  get(path: string): Promise<Response> {
    return fetch(`${this.url}${path}`);
  }

  post(path: string, body: unknown, init: RequestInit = {}): Promise<Response> {
    return fetch(`${this.url}${path}`, { method: 'POST', body: JSON.stringify(body), ...init });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode === null) {
      this.#child.kill('SIGTERM');
      await once(this.#child, 'exit');
    }
    await rm(this.home, { recursive: true, force: true });
  }
}

/** @throws when the stream is not as clients need it: every line JSON, the end once and last */
export function toCell(body: string): Cell {
  const events = body
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Event);
  const ends = events.filter(({ type }) => type === 'end_of_execution').length;
  if (ends !== 1 || events.at(-1)?.type !== 'end_of_execution') throw new Error(`a bad end: ${body.slice(-500)}`);
  const textOf = (name: string) =>
    events
      .filter(({ type }) => type === name)
      .map(({ text }) => text)
      .join('');
  const results = events.filter(({ type }) => type === 'result');
  return {
    events,
    stdout: textOf('stdout'),
    stderr: textOf('stderr'),
    results,
    text: results.find(({ is_main_result }) => is_main_result)?.text,
    error: events.find(({ type }) => type === 'error'),
  };
}
