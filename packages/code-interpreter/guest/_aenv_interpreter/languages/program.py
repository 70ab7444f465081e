"""Kernels that are programs of their own."""

import os
import signal

from ..process import EVENTS_FD, INTERRUPTS_FD, REQUESTS_FD, KernelProcess

# where the kernels in other languages lie: beside the package
FOLDER = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def find_program(name):
    """@returns path of a program, or None"""
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(folder, name)
        if os.access(path, os.X_OK):
            return path
    return None


def start_program(loop, listener, cwd, argv, environment=None, requests_are_stdin=False):
    def child():
        if requests_are_stdin:
            os.dup2(REQUESTS_FD, 0)
            os.close(REQUESTS_FD)
            os.close(INTERRUPTS_FD)
        # Python ignores it, and programs inherit that: the left side of `yes | head` would complain.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.chdir(cwd)
        os.execve(argv[0], argv, {**os.environ, **(environment or {})})

    return KernelProcess(loop, listener, child)
