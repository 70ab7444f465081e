"""HTTP/1.1 requests out of bytes (RFC 9112): pure and bounded, since whoever reaches the port may send anything."""

MAX_HEAD = 64 * 1024
MAX_BODY = 64 * 1024 * 1024
MAX_CHUNK_LINE = 1024


class BadRequest(Exception):
    """What was sent cannot be answered in any other way than by `status`, and the connection is over."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class Request:
    __slots__ = ("method", "path", "headers", "body", "keep_alive")

    def __init__(self, method, path, headers, keep_alive):
        self.method = method
        # without the query
        self.path = path
        # names in lower case; of a repeated one the last counts
        self.headers = headers
        self.body = b""
        self.keep_alive = keep_alive


class RequestParser:
    """Gets bytes as they come, gives requests when they are whole."""

    def __init__(self):
        self._buffer = bytearray()
        self._request = None
        # bytes of the body (or of the chunk) that are missing; None between chunks
        self._missing = 0
        self._chunked = False
        self._trailer = False
        self._body = bytearray()

    def take_expectation(self):
        """Whether the client waits for a word before it sends the body (RFC 9110, 10.1.1); true once."""
        return self._request is not None and self._request.headers.pop("expect", "").lower() == "100-continue"

    @property
    def pending(self):
        """Bytes of later requests that are held back."""
        return len(self._buffer)

    def feed(self, data):
        self._buffer += data

    def next(self):
        """@returns a whole request, or None when more bytes are needed; raises BadRequest"""
        if self._request is None and not self._read_head():
            return None
        if not (self._read_chunks() if self._chunked else self._read_body()):
            return None
        request, self._request = self._request, None
        request.body, self._body = bytes(self._body), bytearray()
        return request

    def _read_head(self):
        # Empty lines before a request are to be ignored (RFC 9112, 2.2).
        while self._buffer[:2] == b"\r\n":
            del self._buffer[:2]
        end = self._buffer.find(b"\r\n\r\n", 0, MAX_HEAD)
        if end < 0:
            if len(self._buffer) >= MAX_HEAD:
                raise BadRequest(431, "the head of the request is too large")
            return False
        lines = self._buffer[:end].decode("latin-1").split("\r\n")
        del self._buffer[: end + 4]
        method, target, version = _split_request_line(lines[0])
        headers = {}
        for line in lines[1:]:
            name, colon, value = line.partition(":")
            if colon == "" or name == "" or name != name.strip():
                raise BadRequest(400, "bad header line")
            headers[name.lower()] = value.strip(" \t")
        connection = headers.get("connection", "").lower()
        keep_alive = "close" not in connection if version == "HTTP/1.1" else "keep-alive" in connection
        self._request = Request(method, target.partition("?")[0], headers, keep_alive)
        self._start_body(headers)
        return True

    def _start_body(self, headers):
        coding = headers.get("transfer-encoding")
        length = headers.get("content-length", "0")
        self._chunked = coding is not None
        self._trailer = False
        if self._chunked:
            # Both fields together are how requests are smuggled.
            if coding.lower() != "chunked" or "content-length" in headers:
                raise BadRequest(400, "bad framing of the body")
            self._missing = None
            return
        if not (length.isascii() and length.isdigit()):
            raise BadRequest(400, "bad Content-Length")
        self._missing = int(length[:16])
        if self._missing > MAX_BODY:
            raise BadRequest(413, "the body is too large")

    def _read_body(self):
        if len(self._buffer) < self._missing:
            return False
        self._body += self._buffer[: self._missing]
        del self._buffer[: self._missing]
        return True

    def _read_chunks(self):
        """@returns whether the last chunk and the trailer have been read"""
        while True:
            if self._missing is None:
                line = self._take_line()
                if line is None:
                    return False
                if self._trailer:
                    if line == b"":
                        return True
                    continue
                self._missing = _chunk_size(line)
                if self._missing + len(self._body) > MAX_BODY:
                    raise BadRequest(413, "the body is too large")
                if self._missing == 0:
                    self._trailer = True
                    self._missing = None
                    continue
            if len(self._buffer) < self._missing + 2:
                return False
            self._body += self._buffer[: self._missing]
            if self._buffer[self._missing : self._missing + 2] != b"\r\n":
                raise BadRequest(400, "bad chunk")
            del self._buffer[: self._missing + 2]
            self._missing = None

    def _take_line(self):
        end = self._buffer.find(b"\r\n")
        if end > MAX_CHUNK_LINE or (end < 0 and len(self._buffer) > MAX_CHUNK_LINE):
            raise BadRequest(400, "bad chunk")
        if end < 0:
            return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        return line


def _split_request_line(line):
    parts = line.split(" ")
    if len(parts) != 3 or not parts[0].isalpha() or not parts[1].startswith("/"):
        raise BadRequest(400, "bad request line")
    if parts[2] not in ("HTTP/1.1", "HTTP/1.0"):
        raise BadRequest(505, "HTTP/1.1 is spoken here")
    return parts


def _chunk_size(line):
    digits = line.partition(b";")[0].strip()
    if not 0 < len(digits) <= 8 or digits.strip(b"0123456789abcdefABCDEF"):
        raise BadRequest(400, "bad chunk size")
    return int(digits, 16)
