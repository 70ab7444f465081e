"""
The event loop: one thread over epoll(7), so that forking a kernel never meets a lock which another thread holds.

asyncio would do as well, but importing it takes longer than everything else that happens before the server listens.
"""

import select
import sys
import time
from heapq import heappop, heappush

READ = select.EPOLLIN
WRITE = select.EPOLLOUT


class Timer:
    """A call that is due; `cancel` may come at any time."""

    __slots__ = ("due", "call")

    def __init__(self, due, call):
        self.due = due
        self.call = call

    def cancel(self):
        self.call = None

    def __lt__(self, other):
        return self.due < other.due


class Loop:
    """Calls handlers when descriptors are ready, when time has come, and when there is nothing else to do."""

    def __init__(self):
        self._epoll = select.epoll()
        self._handlers = {}
        self._timers = []
        self._soon = []
        self._idle = []
        self._running = True

    def watch(self, fd, handler, events=READ):
        """Calls `handler(events)` whenever the descriptor is ready; replaces what was watched of it before."""
        if fd in self._handlers:
            self._epoll.modify(fd, events)
        else:
            self._epoll.register(fd, events)
        self._handlers[fd] = handler

    def forget(self, fd):
        """Must come before the descriptor is closed. One that is not watched is fine."""
        if self._handlers.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def later(self, seconds, call):
        timer = Timer(time.monotonic() + seconds, call)
        heappush(self._timers, timer)
        return timer

    def soon(self, call):
        """When all that is ready now has been handled."""
        self._soon.append(call)

    def when_idle(self, call):
        """Once, in a moment without any other work; those asked for first come first."""
        self._idle.append(call)

    def stop(self):
        self._running = False

    def run(self):
        while self._running:
            for fd, events in self._epoll.poll(self._timeout()):
                handler = self._handlers.get(fd)
                # An earlier handler of the same round may have closed it.
                if handler is not None:
                    self._call(handler, events)
            self._run_due()
            self._run_soon()
            if self._idle and not self._epoll.poll(0):
                self._call(self._idle.pop(0))
                self._run_soon()

    def close(self):
        """Gives the descriptor back, also in a fork, where the object must not close a number that is used anew."""
        self._handlers.clear()
        self._epoll.close()

    def _timeout(self):
        if self._idle:
            return 0
        while self._timers and self._timers[0].call is None:
            heappop(self._timers)
        return max(0, self._timers[0].due - time.monotonic()) if self._timers else -1

    def _run_due(self):
        now = time.monotonic()
        while self._timers and self._timers[0].due <= now:
            call = heappop(self._timers).call
            if call is not None:
                self._call(call)

    def _run_soon(self):
        while self._soon:
            calls, self._soon = self._soon, []
            for call in calls:
                self._call(call)

    def _call(self, call, *arguments):
        """A fault in one request or kernel is told, and the others go on."""
        try:
            call(*arguments)
        except Exception:
            sys.excepthook(*sys.exc_info())
