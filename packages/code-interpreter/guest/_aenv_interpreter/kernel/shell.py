"""The namespace of a kernel and what is done with a cell: compile, run, show the value of the last expression."""

import _ast
import builtins
import sys
import types

from . import hooks
from .display import Publisher
from .source import prepare

# from ast, which takes longer to import than a cell to run
_ONLY_AST = 0x400
_TOP_LEVEL_AWAIT = 0x2000
_FUTURE_FLAGS = 0x1FE0000
_IS_COROUTINE = 0x80
# names that every context has
_OWN = {"In", "Out", "get_ipython", "display"}


class Shell:
    """Cells find it as `get_ipython()`, the name that libraries and notebooks know."""

    def __init__(self, channel):
        self._channel = channel
        self._flags = 0
        self._loop = None
        self.publisher = Publisher(channel)
        self.execution_count = 0
        self.user_module = types.ModuleType("__main__", "Cells of this context.")
        self.user_ns = self.user_module.__dict__
        self.user_ns.update(
            __builtins__=builtins,
            get_ipython=lambda: self,
            display=self.publisher.display,
            In=[""],
            Out={},
            _="",
            __="",
            ___="",
        )
        sys.modules["__main__"] = self.user_module
        hooks.install(self)

    def run(self, code, count):
        """Runs a cell. Faults of the cell are told to the client; nothing of a cell is raised here."""
        self.execution_count = count
        name = f"<cell {count}>"
        try:
            try:
                self._run(code, name)
            finally:
                hooks.after_cell(self)
        except BaseException as error:
            self._tell(error, name)

    def _run(self, code, name):
        source, tree = prepare(code, lambda text: self._compile(text, name, "exec", _ONLY_AST))
        self.user_ns["In"].append(code)
        _remember_source(name, source)
        *statements, last = tree.body or [None]
        shown = isinstance(last, _ast.Expr) and not _ends_with_semicolon(source, last)
        if isinstance(last, _ast.Expr):
            parts = [(_ast.Module(statements, []), "exec"), (_ast.Expression(last.value), "eval")]
        else:
            parts = [(tree, "exec")]
        value = None
        for part, mode in parts:
            value = self._evaluate(self._compile(part, name, mode))
        if shown and value is not None:
            self._show(value)

    def _compile(self, source, name, mode, flags=0):
        code = compile(source, name, mode, flags | self._flags | _TOP_LEVEL_AWAIT, True)
        if isinstance(code, types.CodeType):
            # `from __future__ import ...` holds for later cells, too.
            self._flags |= code.co_flags & _FUTURE_FLAGS
        return code

    def _evaluate(self, code):
        value = eval(code, self.user_ns)
        if not code.co_flags & _IS_COROUTINE:
            return value
        import asyncio

        if self._loop is None or self._loop.is_closed():
            self._loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self._loop)
        task = self._loop.create_task(value)
        try:
            return self._loop.run_until_complete(task)
        except KeyboardInterrupt:
            task.cancel()
            raise

    def _show(self, value):
        self.publisher.publish(value, is_main_result=True)
        names = self.user_ns
        names["___"], names["__"], names["_"] = names["__"], names["_"], value
        names["Out"][self.execution_count] = names[f"_{self.execution_count}"] = value

    def _tell(self, error, name):
        from .tracebacks import describe

        self._channel.send({"type": "error", **describe(error, name)})

    # What notebooks and libraries ask of IPython's shell.

    config = types.MappingProxyType({})
    colors = "NoColor"

    class events:
        """Libraries register to be called after a cell; what we need of that is built in."""

        @staticmethod
        def register(_event, _function):
            pass

        unregister = register

    def run_line_magic(self, name, line, _stack_depth=1):
        from .magics import run_line_magic

        return run_line_magic(self, name, line)

    def run_cell_magic(self, name, line, cell):
        from .magics import run_cell_magic

        return run_cell_magic(self, name, line, cell)

    def system(self, command):
        from .commands import system

        system(self, command)

    def getoutput(self, command, split=True):
        from .commands import getoutput

        return getoutput(self, command, split)

    def run_cell(self, code, **_options):
        self._run(code, f"<cell {self.execution_count}>")

    def ex(self, code):
        exec(code, self.user_ns)

    def ev(self, code):
        return eval(code, self.user_ns)

    def push(self, variables):
        self.user_ns.update(variables)

    def names(self):
        """What cells have defined."""
        return [name for name in self.user_ns if not name.startswith("_") and name not in _OWN]

    def clear(self):
        for name in self.names():
            del self.user_ns[name]

    def enable_gui(self, _gui=None):
        pass

    def showtraceback(self, *_arguments, **_options):
        import traceback

        traceback.print_exc()


def _ends_with_semicolon(source, last):
    """Whether the value of a last expression is not to be shown."""
    lines = source.splitlines()
    line = lines[last.end_lineno - 1].encode()[last.end_col_offset :]
    return line.lstrip().startswith(b";")


def _remember_source(name, source):
    """For tracebacks and `inspect.getsource`; an entry without a time is never dropped."""
    import linecache

    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
