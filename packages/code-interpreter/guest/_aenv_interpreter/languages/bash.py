"""
Bash: one interactive shell without a terminal, since only an interactive shell goes on after Ctrl-C with the next line.
Cells come as quoted words of the lines that it reads, and while it runs one, its stdin is empty.
"""

import re
from shlex import quote

from ..process import EVENTS_FD
from .program import find_program, start_program

_READY = f"printf '.ready\\n' >&{EVENTS_FD}\n"
# No prompts, no history, no notices about jobs.
_SETUP = f"set +H +m; unset HISTFILE; PS1= PS2=; {_READY}"
# A cell finds no way to our pipes.
_RUN = f" </dev/null {EVENTS_FD}>&-\n"
# A shell that is just about to read a line when the signal comes loses that line.
_AFTER_SIGNAL_SECONDS = 0.1
# Any other name a shell cannot have as a variable.
_is_name = re.compile(r"[A-Za-z_][A-Za-z0-9_]*").fullmatch
# What an interactive shell says of its missing terminal when a command was ended by a signal.
_NO_TERMINAL = re.compile(rb"bash: \[\d+: \d+ \(\d+\)\] tcsetattr: Inappropriate ioctl for device\n").sub


def available():
    return find_program("bash") is not None


def clean(name, data):
    return _NO_TERMINAL(b"", data) if name == "stderr" else data


class Kernel:
    def __init__(self, loop, listener, context):
        self._loop = loop
        argv = [find_program("bash"), "--noprofile", "--norc", "--noediting", "-i"]
        self.process = start_program(loop, listener, context.cwd, argv, requests_are_stdin=True)
        self._send(_SETUP)

    def execute(self, cell):
        own = {name: value for name, value in cell["env_vars"].items() if _is_name(name)}
        lines = [f"unset {name}\n" for name in cell["unset_env"] if _is_name(name)]
        lines += [f"export {name}={quote(value)}\n" for name, value in cell["set_env"].items() if _is_name(name)]
        lines += [_override(name, value) for name, value in own.items()]
        # No shell can have a NUL in a word.
        lines += ["eval ", quote(cell["code"].replace("\0", "")), _RUN, _end(cell["count"])]
        lines += [_restore(name) for name in own]
        self._send("".join(lines))

    def interrupt(self, count):
        self.process.interrupt(count)
        self._loop.later(_AFTER_SIGNAL_SECONDS, lambda: self._send(_end(count)))

    def settle(self):
        # A command that was forked but not begun when the signal came lives on, and the shell waits for it.
        self.process.interrupt(0)
        self._loop.later(_AFTER_SIGNAL_SECONDS, lambda: self._send(_READY))

    def _send(self, text):
        self.process.send(text.encode("utf-8", "surrogateescape"))


def _end(count):
    return f"printf '.end %d {count}\\n' \"$?\" >&{EVENTS_FD}\n"


def _override(name, value):
    old = f"__aenv_old_{name}"
    return f"if [[ -v {name} ]]; then {old}=${name}; else unset {old}; fi; export {name}={quote(value)}\n"


def _restore(name):
    old = f"__aenv_old_{name}"
    return f"if [[ -v {old} ]]; then export {name}=${old}; unset {old}; else unset {name}; fi\n"
