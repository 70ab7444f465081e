"""A kernel process: a fork in a session of its own, with pipes for output, requests and events."""

import fcntl
import os
import signal

from .loop import READ, WRITE

READ_SIZE = 64 * 1024
# A kernel that sends a longer line is broken.
MAX_LINE = 256 * 1024 * 1024
# Where a kernel finds its ends of the pipes.
REQUESTS_FD = 3
EVENTS_FD = 4
INTERRUPTS_FD = 5
# Above everything that is set up below, so that nothing is overwritten on the way.
_SCRATCH_FD = 64


class KernelProcess:
    """
    `listener` is told what comes: `on_output(name, data)` with the raw bytes of `stdout` and `stderr`,
    `on_event(line)`, and `on_exit(status)` once, last, when all that was written before has been told.
    """

    def __init__(self, loop, listener, child):
        """`child()` runs in the new process and ends it; it finds its pipes under the numbers above."""
        self._loop = loop
        self._listener = listener
        self._unsent = bytearray()
        self._line = bytearray()
        self._paused = False
        stdout, stderr, requests, events, interrupts = (os.pipe() for _ in range(5))
        ours = [stdout[0], stderr[0], requests[1], events[0], interrupts[1]]
        theirs = [stdout[1], stderr[1], requests[0], events[1], interrupts[0]]
        self.pid = os.fork()
        if self.pid == 0:
            _become_kernel(loop, theirs, child)
        for fd in theirs:
            os.close(fd)
        for fd in ours:
            os.set_blocking(fd, False)
        self._outputs = {"stdout": ours[0], "stderr": ours[1]}
        self._requests, self._events, self._interrupts = ours[2:]
        self._exit = os.pidfd_open(self.pid)
        loop.watch(self._exit, self._on_exit)
        self._watch_outputs()

    def send(self, data):
        """Bytes for the kernel's request pipe, whenever it is ready to take them."""
        if self._requests >= 0:
            self._unsent += data
            self._flush()

    def interrupt(self, count):
        """As Ctrl-C does, to the kernel and all that it has started; kernels deaf to it are told the cell's number."""
        self._signal_group(signal.SIGINT)
        if self._interrupts >= 0:
            try:
                os.write(self._interrupts, b"%d\n" % count)
            except OSError:
                pass

    def kill(self):
        self._signal_group(signal.SIGKILL)

    def leave(self):
        """Kills it, and tells nothing of it any more."""
        self._listener = _Nobody()
        self.resume()
        self.kill()

    def pause(self):
        """Stops reading, so that the kernel stops when its pipes are full."""
        if not self._paused and self._exit >= 0:
            self._paused = True
            for fd in (*self._outputs.values(), self._events):
                self._loop.forget(fd)

    def resume(self):
        if self._paused and self._exit >= 0:
            self._paused = False
            self._watch_outputs()

    def _signal_group(self, number):
        if self._exit < 0:
            return
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            # It has not come to make its group yet.
            os.kill(self.pid, number)

    def _watch_outputs(self):
        for name, fd in self._outputs.items():
            if fd >= 0:
                self._loop.watch(fd, lambda _events, name=name: self._read_output(name))
        if self._events >= 0:
            self._loop.watch(self._events, lambda _events: self._read_events())

    def _read_output(self, name):
        fd = self._outputs[name]
        data = self._read(fd)
        if data == b"":
            self._outputs[name] = -1
        elif data is not None:
            self._listener.on_output(name, data)

    def _read_events(self):
        # What was printed before an event is told before it. One read takes all that a pipe holds.
        for name in self._outputs:
            if not self._paused:
                self._read_output(name)
        data = None if self._paused else self._read(self._events)
        if data == b"":
            self._events = -1
        if not data:
            return
        start = 0
        if b"\n" in data:
            for line in (self._line + data).split(b"\n")[:-1]:
                self._listener.on_event(bytes(line))
            self._line.clear()
            start = data.rindex(b"\n") + 1
        self._line += data[start:]
        if len(self._line) > MAX_LINE:
            self.kill()

    def _read(self, fd):
        """@returns bytes; empty when the pipe has ended, and is closed then; None when there is nothing now"""
        if fd < 0:
            return None
        try:
            data = os.read(fd, READ_SIZE)
        except BlockingIOError:
            return None
        except OSError:
            data = b""
        if data == b"":
            self._loop.forget(fd)
            os.close(fd)
        return data

    def _flush(self):
        try:
            while self._unsent:
                sent = os.write(self._requests, self._unsent)
                del self._unsent[:sent]
        except BlockingIOError:
            self._loop.watch(self._requests, lambda _events: self._flush(), WRITE)
            return
        except OSError:
            # The kernel is gone, which is told by itself.
            self._unsent.clear()
        self._loop.forget(self._requests)

    def _on_exit(self, _events):
        # What it has started may hold its output open for ever. While it is not waited for, the number is its own.
        self._signal_group(signal.SIGKILL)
        _, status = os.waitpid(self.pid, 0)
        self._loop.forget(self._exit)
        os.close(self._exit)
        self._exit = -1
        self._paused = False
        self._read_events()
        for fd in (*self._outputs.values(), self._events, self._requests, self._interrupts):
            if fd >= 0:
                self._loop.forget(fd)
                os.close(fd)
        self._outputs = {"stdout": -1, "stderr": -1}
        self._events = self._requests = self._interrupts = -1
        self._listener.on_exit(status)


class _Nobody:
    """Listens to a kernel that is not wanted any more."""

    def on_output(self, name, data):
        pass

    def on_event(self, line):
        pass

    def on_exit(self, status):
        pass


def _become_kernel(loop, pipes, child):
    """In the fork: leaves everything of the server behind but its memory."""
    try:
        os.setsid()
        # Kept as an object it would close its old number when it is collected, whatever that number is by then.
        loop.close()
        moved = [fcntl.fcntl(fd, fcntl.F_DUPFD, _SCRATCH_FD) for fd in pipes]
        null = os.open("/dev/null", os.O_RDONLY)
        os.dup2(null, 0)
        for fd, number in zip(moved, (1, 2, REQUESTS_FD, EVENTS_FD, INTERRUPTS_FD)):
            os.dup2(fd, number)
        os.closerange(INTERRUPTS_FD + 1, os.sysconf("SC_OPEN_MAX"))
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        child()
    except BaseException as error:
        os.write(2, f"the kernel did not start: {error!r}\n".encode())
    finally:
        os._exit(1)
