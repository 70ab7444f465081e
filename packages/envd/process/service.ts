import {
  type Process,
  type ProcessInput,
  type ProcessSelector,
  type PTY,
  Signal,
  type StartRequest,
} from '@aenv/contracts/envd/gen/process_pb.ts';
import { AenvError } from '@aenv/contracts/errors/aenv-error.ts';
import type { Call, Implementation } from '../rpc/call.ts';
import type { EnvdContext } from '../server/context.ts';
import { buildEnvironment } from './environment.ts';
import type { TerminalSize } from './launch.ts';
import type { Selector } from './process-table.ts';
import type { RunningProcess } from './running-process.ts';
import { streamEvents } from './stream-events.ts';
import { workingDirectory } from './working-directory.ts';

const DEFAULT_SIZE: TerminalSize = { cols: 80, rows: 24 };

/** The process service over the process table. */
export function processService(envd: EnvdContext): Implementation<typeof Process> {
  const { processes } = envd;
  return {
    list: () => ({
      processes: processes
        .list()
        .map(({ pid, identity: { config, tag } }) => ({ pid, config, ...(tag === undefined ? {} : { tag }) })),
    }),

    async *start(request, call) {
      yield* streamEvents(await start(envd, request, call), call, 'kills');
    },

    async *connect(request, call) {
      yield* streamEvents(processes.findRecent(selectorOf(request.process)), call, 'detaches');
    },

    update(request) {
      const process = processes.find(selectorOf(request.process));
      if (request.pty !== undefined) process.resize(sizeOf(request.pty));
      return {};
    },

    async sendInput(request) {
      const process = processes.find(selectorOf(request.process));
      await write(process, request.input);
      return {};
    },

    async streamInput(requests) {
      let process: RunningProcess | undefined;
      for await (const { event } of requests) {
        if (event.case === 'start') {
          process = processes.find(selectorOf(event.value.process));
        } else if (event.case === 'data') {
          if (process === undefined) throw new AenvError('invalid_request', 'the first message must be `start`');
          await write(process, event.value.input);
        }
      }
      return {};
    },

    sendSignal(request) {
      const process = processes.find(selectorOf(request.process));
      if (request.signal === Signal.SIGKILL) process.signal('SIGKILL');
      else if (request.signal === Signal.SIGTERM) process.signal('SIGTERM');
      else throw new AenvError('not_implemented', `signal ${request.signal} cannot be sent`);
      return {};
    },

    closeStdin(request) {
      const process = processes.find(selectorOf(request.process));
      if (process.hasTerminal) throw new AenvError('stdin_of_terminal', 'a terminal has no stdin to close; send ^D');
      process.input.end();
      return {};
    },
  };
}

async function start(envd: EnvdContext, request: StartRequest, call: Call): Promise<RunningProcess> {
  const config = request.process;
  if (config === undefined || config.cmd === '') throw new AenvError('invalid_request', '`process.cmd` is missing');
  const user = await envd.users.fromAuthorization(call.header('authorization'));
  const cwd = await workingDirectory(config.cwd, user, envd.state.current.defaultWorkdir);
  const terminal = request.pty === undefined ? undefined : sizeOf(request.pty);
  const environment = buildEnvironment({
    user,
    sandbox: envd.state.current.envVars,
    platform: envd.state.platformEnvironment(),
    request: config.envs,
    terminal: terminal !== undefined,
  });
  return envd.processes.start(
    {
      native: envd.options.native,
      command: config.cmd,
      args: config.args,
      environment,
      user,
      cwd,
      stdin: request.stdin ?? true,
      ...(terminal === undefined ? {} : { terminal }),
    },
    { config, tag: request.tag },
  );
}

function selectorOf(selector: ProcessSelector | undefined): Selector {
  switch (selector?.selector.case) {
    case 'pid':
      return { pid: selector.selector.value };
    case 'tag':
      return { tag: selector.selector.value };
    default:
      throw new AenvError('invalid_request', '`process` must name a pid or a tag');
  }
}

function sizeOf(pty: PTY): TerminalSize {
  const clip = (value: number | undefined, otherwise: number) => Math.min(value || otherwise, 0xffff);
  return { cols: clip(pty.size?.cols, DEFAULT_SIZE.cols), rows: clip(pty.size?.rows, DEFAULT_SIZE.rows) };
}

async function write(process: RunningProcess, input: ProcessInput | undefined): Promise<void> {
  if (input?.input.case === undefined) throw new AenvError('invalid_request', '`input` must be stdin or pty');
  await process.input.write(input.input.case, input.input.value);
}
