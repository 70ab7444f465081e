"""One cell that a client waits for: what its kernel tells goes out as lines, until the end or the client is gone."""

from time import monotonic

from .text import END_LINE, KEEPALIVE_LINE, error_line

KEEPALIVE_SECONDS = 5


class Execution:
    def __init__(self, loop, connection, context, code, environment, env_vars):
        self.code = code
        # variables of the sandbox; None when nobody can be asked
        self.environment = environment
        # variables for this cell only
        self.env_vars = env_vars
        self._loop = loop
        self._connection = connection
        self._context = context
        # whether the client went away before the end
        self.gone = False
        self._written = monotonic()
        connection.on_gone = self._on_gone
        connection.on_drain = lambda: context.slow_down(self, False)
        connection.start_stream("application/json")
        self._keep_alive()

    def write(self, line):
        """A whole line, or nothing."""
        if line == b"" or self._connection is None:
            return
        self._connection.write_chunk(line)
        self._written = monotonic()
        if self._connection is not None and self._connection.full:
            self._context.slow_down(self, True)

    def end(self):
        self.write(END_LINE)
        connection, self._connection = self._connection, None
        self._timer.cancel()
        if connection is not None:
            connection.end_stream()

    def fail(self, name, why):
        self.write(error_line(name, why))
        self.end()

    def _keep_alive(self):
        """Writing is also how a client that vanished without a word is noticed."""
        if self._written + KEEPALIVE_SECONDS <= monotonic():
            self.write(KEEPALIVE_LINE)
        rest = self._written + KEEPALIVE_SECONDS - monotonic()
        self._timer = self._loop.later(max(rest, 0.01), self._keep_alive)

    def _on_gone(self):
        self.gone = True
        self._connection = None
        self._timer.cancel()
        self._context.abandon(self)
