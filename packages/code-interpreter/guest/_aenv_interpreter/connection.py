"""One client: requests in, answers out, with the descriptor as a plain number so that a fork can simply close it."""

import os

from .loop import READ, WRITE
from .request import BadRequest, RequestParser

READ_SIZE = 256 * 1024
# A client that reads slower than a kernel writes holds the kernel up from here on.
HIGH_WATER = 1024 * 1024
# What a client may send while its request is being worked on.
MAX_PIPELINED = 1024 * 1024

REASONS = {
    100: "Continue",
    200: "OK",
    204: "No Content",
    400: "Bad Request",
    401: "Unauthorized",
    404: "Not Found",
    405: "Method Not Allowed",
    413: "Content Too Large",
    422: "Unprocessable Content",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    501: "Not Implemented",
    503: "Service Unavailable",
    505: "HTTP Version Not Supported",
}


class Connection:
    """Answers one request at a time, in the order in which they came. `handle(connection, request)` does the work."""

    def __init__(self, loop, fd, handle, closed):
        self.fd = fd
        # called when the client is gone while its request is worked on
        self.on_gone = None
        # called when what was written has gone out
        self.on_drain = None
        self._loop = loop
        self._handle = handle
        self._closed = closed
        self._parser = RequestParser()
        self._request = None
        self._out = bytearray()
        self._flush_due = False
        self._closing = False
        self._watch()

    @property
    def full(self):
        return len(self._out) > HIGH_WATER

    def answer(self, status, body, content_type="application/json"):
        """A whole answer; `body` is text."""
        data = body.encode()
        self._write(self._head(status, content_type, f"Content-Length: {len(data)}\r\n") + data)
        self._finish()

    def start_stream(self, content_type):
        """The head goes out at once: clients wait for it with a limit of its own."""
        framing = "Transfer-Encoding: chunked\r\n" if self._request.keep_alive else ""
        self._write(self._head(200, content_type, framing))

    def write_chunk(self, data):
        """A piece of the streamed answer, ASCII and whole lines; dropped when the client is gone."""
        if self._request is not None and self._request.keep_alive:
            data = b"%x\r\n%s\r\n" % (len(data), data)
        self._write(data)

    def end_stream(self):
        if self._request is not None and self._request.keep_alive:
            self._write(b"0\r\n\r\n")
        self._finish()

    def close(self):
        if self.fd < 0:
            return
        self._loop.forget(self.fd)
        os.close(self.fd)
        self.fd = -1
        self._out.clear()
        self._closed(self)
        gone, self.on_gone, self.on_drain = self.on_gone, None, None
        if gone is not None:
            gone()

    def _head(self, status, content_type, framing):
        head = f"HTTP/1.1 {status} {REASONS.get(status, 'Error')}\r\nContent-Type: {content_type}\r\n{framing}"
        request = self._request
        if request is not None and "origin" in request.headers:
            head += "Access-Control-Allow-Origin: *\r\n"
            if request.method == "OPTIONS":
                asked = request.headers.get("access-control-request-headers", "*")
                head += f"Access-Control-Allow-Methods: GET, POST, DELETE\r\nAccess-Control-Allow-Headers: {asked}\r\n"
        if request is None or not request.keep_alive:
            head += "Connection: close\r\n"
        return (head + "\r\n").encode("latin-1")

    def _finish(self):
        self.on_gone = self.on_drain = None
        request, self._request = self._request, None
        self._closing = request is None or not request.keep_alive
        self._write(b"")
        # Not from inside the handler of the request before.
        if self._parser.pending > 0:
            self._loop.soon(self._take_requests)

    def _write(self, data):
        """What is written in one round of the loop goes out together."""
        if self.fd < 0:
            return
        self._out += data
        if not self._flush_due:
            self._flush_due = True
            self._loop.soon(self._flush)

    def _flush(self):
        self._flush_due = False
        if self.fd < 0:
            return
        try:
            while self._out:
                sent = os.write(self.fd, self._out)
                del self._out[:sent]
        except BlockingIOError:
            pass
        except OSError:
            self.close()
            return
        if not self._out and self._closing:
            self.close()
            return
        self._watch()
        if not self._out and self.on_drain is not None:
            self.on_drain()

    def _watch(self):
        if self.fd < 0:
            return
        # While a request is worked on, reading goes on only to notice that the client is gone.
        reads = not self._closing and self._parser.pending <= MAX_PIPELINED
        events = (READ if reads else 0) | (WRITE if self._out else 0)
        self._loop.watch(self.fd, self._on_ready, events)

    def _on_ready(self, events):
        if events & ~READ and self._out:
            self._flush()
        if self.fd >= 0 and events & ~WRITE and not self._closing:
            self._on_readable()
        elif self.fd >= 0 and events & ~(READ | WRITE):
            self.close()

    def _on_readable(self):
        try:
            data = os.read(self.fd, READ_SIZE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data == b"":
            self.close()
            return
        self._parser.feed(data)
        self._take_requests()

    def _take_requests(self):
        if self.fd < 0 or self._request is not None or self._closing:
            self._watch()
            return
        try:
            request = self._parser.next()
        except BadRequest as error:
            self.answer(error.status, str(error), "text/plain")
            return
        if request is not None:
            self._request = request
            try:
                self._handle(self, request)
            except Exception:
                if self._request is request:
                    self.answer(500, "Internal Server Error", "text/plain")
                raise
        elif self._parser.take_expectation():
            self._write(b"HTTP/1.1 100 Continue\r\n\r\n")
