"""A context: one kernel with its state, and the cells that wait for it."""

import os
from collections import deque

from .text import OutputDecoder, count_line, error_line

# What a kernel says before it is ready is only of interest when it never is.
_MAX_EARLY_OUTPUT = 4096
_FIRST_REPEAT_SECONDS = 1
# What processes have whoever made the sandbox; everything else of the first environment came with the sandbox.
_OWN_NAMES = {"HOME", "LANG", "LOGNAME", "OLDPWD", "PATH", "PWD", "SHELL", "SHLVL", "TERM", "USER", "_"}


class Context:
    """Runs cells one after the other. A kernel is started when it is needed, and again after it has died."""

    def __init__(self, loop, context_id, language, cwd, module):
        self.id = context_id
        self.language = language
        self.cwd = cwd
        self._loop = loop
        self._module = module
        self._kernel = None
        self._waiting = deque()
        self._current = None
        self._when_ready = []
        self._forget_kernel()

    def start(self, ready=None):
        """Starts the kernel ahead of the first cell; calls `ready` when it could run one, or is over."""
        if self._kernel is None:
            self._kernel = self._module.Kernel(self._loop, self, self)
        if ready is not None:
            self._when_ready.append(ready)
            if self._ready:
                self._tell_ready()

    def submit(self, execution):
        self._waiting.append(execution)
        self._next()

    def abandon(self, execution):
        """The client is gone: what runs is interrupted, what waits is dropped."""
        if execution is self._current:
            self._kernel.process.resume()
            self._interrupt(execution, _FIRST_REPEAT_SECONDS)
        elif execution in self._waiting:
            self._waiting.remove(execution)

    def slow_down(self, execution, full):
        """Lets the kernel wait while the client has more to read than fits."""
        if execution is self._current and self._kernel is not None:
            (self._kernel.process.pause if full else self._kernel.process.resume)()

    def restart(self):
        self._end_kernel("the context was restarted")
        self.start()
        self._next()

    def close(self):
        """Ends the kernel and everything that still waits for it."""
        self._end_kernel("the context was removed")
        while self._waiting:
            self._waiting.popleft().fail("UnexpectedEndOfExecution", "the context was removed")

    def on_output(self, name, data):
        if not self._ready:
            self._early = (self._early + data)[-_MAX_EARLY_OUTPUT:]
        elif self._current is not None:
            self._current.write(self._decoders[name].event(self._module.clean(name, data)))

    def on_event(self, line):
        word, _, rest = line.partition(b" ")
        if word == b".ready":
            self._on_ready()
        elif word == b".end":
            code, _, count = rest.partition(b" ")
            # Kernels that may say so several times name the cell.
            if count in (b"", b"%d" % self._count):
                self._finish(_exit_error(code))
        elif self._current is not None and line.startswith(b"{"):
            self._current.write(line + b"\n")

    def on_exit(self, status):
        early = "" if self._ready else self._early.decode("utf-8", "replace").strip()
        how = f"the {self.language} kernel ended {_describe(status)}"
        self._kernel = None
        self._forget_kernel()
        self._tell_ready()
        self._finish(error_line("UnexpectedEndOfExecution", f"{how}: {early}" if early else how))

    def _interrupt(self, execution, seconds):
        """Again and again, ever later: a signal that comes when a command is about to begin does not reach it."""
        if execution is self._current:
            self._kernel.interrupt(self._count)
            self._loop.later(seconds, lambda: self._interrupt(execution, seconds * 2))

    def _settle(self, kernel, seconds=_FIRST_REPEAT_SECONDS):
        """After an interrupt, until the kernel says that it is ready: it may hang on a command that was missed."""
        if kernel is self._kernel and not self._ready:
            kernel.settle()
            self._loop.later(seconds, lambda: self._settle(kernel, seconds * 2))

    def _on_ready(self):
        # It may say so several times, when it was asked several times.
        if not self._ready:
            self._ready = True
            self._tell_ready()
            if self._current is not None:
                self._kernel.execute(self._cell(self._current))

    def _tell_ready(self):
        calls, self._when_ready = self._when_ready, []
        for call in calls:
            call()

    def _end_kernel(self, why):
        if self._kernel is not None:
            # Nobody listens to it any more, whatever it still says.
            self._kernel.process.leave()
            self._kernel = None
        self._forget_kernel()
        if self._current is not None:
            current, self._current = self._current, None
            current.fail("UnexpectedEndOfExecution", why)

    def _forget_kernel(self):
        self._count = 0
        self._ready = False
        self._early = b""
        self._environment = {
            name: value
            for name, value in os.environ.items()
            if name not in _OWN_NAMES and not name.startswith("E2B_")
        }

    def _next(self):
        if self._current is not None or not self._waiting:
            return
        execution = self._waiting.popleft()
        try:
            self.start()
        except OSError as error:
            execution.fail("UnexpectedEndOfExecution", f"the {self.language} kernel did not start: {error}")
            return
        self._current = execution
        self._count += 1
        self._decoders = {name: OutputDecoder(name) for name in ("stdout", "stderr")}
        execution.write(count_line(self._count))
        if self._ready:
            self._kernel.execute(self._cell(execution))

    def _cell(self, execution):
        before = self._environment
        after = self._environment = before if execution.environment is None else execution.environment
        return {
            "code": execution.code,
            "count": self._count,
            "set_env": {name: value for name, value in after.items() if before.get(name) != value},
            "unset_env": [name for name in before if name not in after],
            "env_vars": execution.env_vars,
        }

    def _finish(self, error):
        if self._current is None:
            return
        current, self._current = self._current, None
        for decoder in self._decoders.values():
            current.write(decoder.event(b"", final=True))
        current.write(error)
        current.end()
        if current.gone and self._kernel is not None:
            self._ready = False
            self._settle(self._kernel)
        self._next()


def _exit_error(code):
    """Kernels that are shells tell an exit code; one other than 0 is an error, with the code as its value."""
    return error_line("ExitCode", code.decode()) if code not in (b"", b"0") else b""


def _describe(status):
    if os.WIFSIGNALED(status):
        return f"by signal {os.WTERMSIG(status)}"
    return f"with exit code {os.waitstatus_to_exitcode(status)}"
