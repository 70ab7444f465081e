"""SIGINT as KeyboardInterrupt, while a cell runs and only then."""

import signal


class Interrupts:
    """A context manager around a cell."""

    def __init__(self):
        self._active = False
        self._held = False
        self._pending = False
        signal.signal(signal.SIGINT, self._on_signal)

    def __enter__(self):
        self._pending = False
        self._active = True

    def __exit__(self, *_error):
        self._active = False

    def hold(self):
        """An interrupt that comes from here on waits for `release`."""
        self._held = True

    def release(self):
        self._held = False
        if self._pending and self._active:
            self._pending = False
            raise KeyboardInterrupt

    def _on_signal(self, _number, _frame):
        if self._held:
            self._pending = True
        elif self._active:
            raise KeyboardInterrupt
