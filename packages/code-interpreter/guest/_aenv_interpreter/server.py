"""The server: listens, and warms up when it has nothing to do, so that the first cell finds everything in memory."""

import _socket as socket
import os
import signal

from .api import Api
from .connection import Connection
from .contexts import Contexts
from .envd import Envd
from .loop import Loop
from .warmth import Warmth

MAX_CONNECTIONS = 256
BACKLOG = 128


def serve(host, port, envd_port, home, ready=None):
    """
    Runs until SIGTERM. Plain sockets and no others: `socket` takes longer to import than this takes to start.
    @param envd_port port of envd on the loopback, or None to ask nobody
    @param ready called with the port that is listened on
    """
    loop = Loop()
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Inherited by the connections: lines of a stream go out one by one.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listener.bind((host, port))
    listener.listen(BACKLOG)
    actual = listener.getsockname()[1]
    listener.setblocking(False)
    contexts = Contexts(loop, home)
    warmth = Warmth(loop, contexts)
    api = Api(loop, contexts, None if envd_port is None else Envd(loop, envd_port), warmth)
    _Listener(loop, listener.detach(), api)
    _stop_by_signal(loop)
    warmth.begin()
    if ready is not None:
        ready(actual)
    loop.run()
    contexts.close()


class _Listener:
    def __init__(self, loop, fd, api):
        self._loop = loop
        self._fd = fd
        self._api = api
        self._connections = set()
        loop.watch(fd, self._on_ready)

    def _on_ready(self, _events):
        listener = socket.socket(fileno=self._fd)
        try:
            fd, _address = listener._accept()
        except OSError:
            return
        finally:
            listener.detach()
        os.set_blocking(fd, False)
        self._connections.add(Connection(self._loop, fd, self._api.handle, self._closed))
        if len(self._connections) >= MAX_CONNECTIONS:
            self._loop.forget(self._fd)

    def _closed(self, connection):
        self._connections.discard(connection)
        self._loop.watch(self._fd, self._on_ready)


def _stop_by_signal(loop):
    """A signal ends the server in order; Ctrl-C is for kernels."""
    reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    signal.signal(signal.SIGTERM, lambda _number, _frame: loop.stop())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    loop.watch(reading, lambda _events: os.read(reading, 64))
