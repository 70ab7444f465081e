"""
What is loaded before anybody asks for it. Python kernels are forks of the server, so each has it from its first moment.
"""

import gc
import sys

# What cells and answers need first, in pieces, between which requests are served.
FIRST = ("json", "re", "linecache", "traceback", "subprocess", "_aenv_interpreter.kernel.main")
# What cells import most, and what takes long. Only for machines that are captured: on a booting one a cell would wait.
LIKELY = (
    *("asyncio", "datetime", "math", "pathlib", "pprint", "random", "requests"),
    *("numpy", "pandas", "PIL.Image"),
    *("matplotlib.pyplot", "matplotlib.dates", "_aenv_interpreter.kernel.figures", "IPython.display"),
    *("_aenv_interpreter.kernel.magics", "_aenv_interpreter.kernel.tracebacks"),
)


class Warmth:
    def __init__(self, loop, contexts):
        self._loop = loop
        self._contexts = contexts
        self._state = "begun"
        self._waiting = []

    def begin(self):
        """Loads a little whenever there is nothing else to do."""
        for name in FIRST:
            self._loop.when_idle(lambda name=name: _load(name))
        self._loop.when_idle(_keep)

    def complete(self, done):
        """Loads all that cells are likely to need, starts each kind of kernel once, then calls `done`."""
        self._waiting.append(done)
        if self._state == "complete":
            self._finish()
        if self._state != "begun":
            return
        self._state = "completing"
        for name in LIKELY:
            self._loop.when_idle(lambda name=name: _load(name))
        self._loop.when_idle(_draw)
        self._loop.when_idle(_keep)
        self._loop.when_idle(lambda: self._try(["javascript", "bash"]))

    def _try(self, languages):
        if languages:
            self._contexts.try_out(languages[0], lambda: self._try(languages[1:]))
        else:
            # The one that most cells go to stays.
            self._contexts.default("python").start(self._finish)

    def _finish(self):
        self._state = "complete"
        waiting, self._waiting = self._waiting, []
        for done in waiting:
            done()


def _load(name):
    # The stand-in for IPython is found by kernels only.
    from .kernel.main import SHIMS

    sys.path.insert(0, SHIMS)
    try:
        __import__(name)
    except ModuleNotFoundError:
        # An image may do without it.
        pass
    except Exception as error:
        print(f"warm-up: {name}: {error}", file=sys.stderr)
    finally:
        sys.path.remove(SHIMS)


def _draw():
    """The first figure takes many times as long as the next one: fonts are looked for."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return
    from io import BytesIO

    figure = pyplot.figure()
    figure.add_subplot().plot([1, 2], label="1")
    figure.savefig(BytesIO(), format="png", bbox_inches="tight")
    pyplot.close(figure)


def _keep():
    """What lives until now lives for ever: forks share its pages as long as nobody looks for garbage in them."""
    gc.collect()
    gc.freeze()
