"""The kernel's life: takes cells from the request pipe until it ends, tells what comes of them on the event pipe."""

import io
import os
import sys

from .channel import Channel
from .interrupts import Interrupts
from .shell import Shell

# beside the package: stand-ins for modules that cells import
SHIMS = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "shims")


def run(requests_fd, events_fd):
    """Never returns."""
    interrupts = Interrupts()
    channel = Channel(events_fd, interrupts)
    _set_up_process()
    shell = Shell(channel)
    channel.send_word("ready")
    for request in channel.requests(requests_fd):
        if request is None:
            channel.send_word("ready")
            continue
        if shell.execution_count == 0:
            _reseed()
        _apply(request["set_env"], request["unset_env"])
        saved = _override(request["env_vars"])
        try:
            with interrupts:
                shell.run(request["code"], request["count"])
        except KeyboardInterrupt:
            # It came when the cell was over already.
            pass
        finally:
            _restore(saved)
        _flush()
        channel.send_word("end")
    _run_exit_handlers()
    os._exit(0)


def _set_up_process():
    """What user code expects of the process that it runs in."""
    # Lines go out when they are whole; what cannot be encoded is shown instead of raising.
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), "utf-8", "backslashreplace", line_buffering=True)
    sys.stderr = io.TextIOWrapper(io.FileIO(2, "w", closefd=False), "utf-8", "backslashreplace", line_buffering=True)
    sys.stdin = _Stdin(io.BufferedReader(io.FileIO(0, closefd=False)), "utf-8")
    sys.__stdout__, sys.__stderr__, sys.__stdin__ = sys.stdout, sys.stderr, sys.stdin
    sys.argv = [""]
    # The first entry is the folder of the server's own program.
    sys.path[:1] = ["", SHIMS]


class _Stdin(io.TextIOWrapper):
    """Empty, and stays open: `exit()` closes it, and the kernel goes on."""

    def close(self):
        pass


def _reseed():
    """Forks of one process, and clones of one machine, would all draw the same numbers."""
    for name in ("random", "numpy.random"):
        module = sys.modules.get(name)
        if module is not None:
            module.seed()


def _apply(values, removed):
    for name in removed:
        os.environ.pop(name, None)
    os.environ.update(values)


def _override(values):
    """@returns what the variables were before, None where there was none"""
    saved = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    return saved


def _restore(saved):
    for name, value in saved.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _flush():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            # A cell may have put anything in its place, or closed it.
            pass


def _run_exit_handlers():
    import atexit

    atexit._run_exitfuncs()
    _flush()
