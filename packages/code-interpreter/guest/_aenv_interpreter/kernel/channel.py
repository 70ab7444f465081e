"""The kernel's ends of the pipes to the server: requests are lines of JSON, events lines of JSON in ASCII or words."""

import json
import os


class Channel:
    def __init__(self, events_fd, interrupts):
        self._events = events_fd
        self._interrupts = interrupts
        # A child that a cell forks must not speak for the kernel.
        self._owner = os.getpid()

    def requests(self, fd):
        with open(fd, "rb", closefd=False) as lines:
            for line in lines:
                yield json.loads(line)

    def send(self, event):
        """One event as the client gets it."""
        self._write(json.dumps(event).encode("ascii") + b"\n")

    def send_word(self, word):
        self._write(b".%s\n" % word.encode("ascii"))

    def _write(self, data):
        if os.getpid() != self._owner:
            return
        # Half a line would make the next one unreadable.
        self._interrupts.hold()
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(self._events, view) :]
        finally:
            self._interrupts.release()
