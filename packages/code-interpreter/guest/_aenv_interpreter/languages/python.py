"""Python: a fork of the server itself, which has the interpreter and much of the library in memory already."""

import os

from ..process import EVENTS_FD, REQUESTS_FD, KernelProcess


def available():
    return True


def clean(_name, data):
    return data


class Kernel:
    def __init__(self, loop, listener, context):
        def child():
            # Commands that a cell runs get its output, but not the pipes to the server.
            for fd in (REQUESTS_FD, EVENTS_FD):
                os.set_inheritable(fd, False)
            os.chdir(context.cwd)
            from ..kernel.main import run

            run(REQUESTS_FD, EVENTS_FD)

        self.process = KernelProcess(loop, listener, child)

    def execute(self, cell):
        import json

        self.process.send(json.dumps(cell).encode("ascii") + b"\n")

    def interrupt(self, count):
        self.process.interrupt(count)

    def settle(self):
        self.process.send(b"null\n")
