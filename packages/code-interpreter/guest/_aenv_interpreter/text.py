"""Lines of JSON in plain ASCII: clients decode every network chunk by itself, which breaks characters of many bytes."""

import codecs
import time
from _json import encode_basestring_ascii as quote


def timestamp():
    """The moment in RFC 3339, UTC, to the microsecond."""
    now = time.time()
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(now))}.{int(now % 1 * 1e6):06d}+00:00"


class OutputDecoder:
    """The bytes that a kernel prints as events of one stream; characters that are cut are put together again."""

    def __init__(self, name):
        self._name = name
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode

    def event(self, data, final=False):
        """@returns a line, or nothing while there is no whole character"""
        text = self._decode(data, final)
        if text == "":
            return b""
        line = f'{{"type": "{self._name}", "text": {quote(text)}, "timestamp": "{timestamp()}"}}\n'
        return line.encode("ascii")


def error_line(name, value, traceback=""):
    line = f'{{"type": "error", "name": {quote(name)}, "value": {quote(value)}, "traceback": {quote(traceback)}}}\n'
    return line.encode("ascii")


KEEPALIVE_LINE = b'{"type": "keepalive"}\n'
END_LINE = b'{"type": "end_of_execution"}\n'


def count_line(count):
    return b'{"type": "number_of_executions", "execution_count": %d}\n' % count
