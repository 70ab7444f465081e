"""JavaScript and TypeScript: Node with our kernel program, which evaluates cells in the way of a developer console."""

import os

from .program import FOLDER, find_program, start_program

# The kernel removes types with a function of Node that is not final, and says so on stderr otherwise.
OPTIONS = ("--disable-warning=ExperimentalWarning",)


def available():
    return find_program("node") is not None


def clean(_name, data):
    return data


class Kernel:
    def __init__(self, loop, listener, context):
        kernel = os.path.join(FOLDER, "node", "kernel.mjs")
        argv = [find_program("node"), *OPTIONS, kernel, context.language]
        self.process = start_program(loop, listener, context.cwd, argv)

    def execute(self, cell):
        import json

        self.process.send(json.dumps(cell).encode("ascii") + b"\n")

    def interrupt(self, count):
        self.process.interrupt(count)

    def settle(self):
        self.process.send(b"null\n")
