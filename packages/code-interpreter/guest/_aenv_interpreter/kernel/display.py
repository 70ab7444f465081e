"""Shows values: as the result of a cell or by `display`, in all the forms that they have."""

import contextlib

from .mime import CHART, DATA, bundle_of, portable

# media types and the names under which clients look for them
_NAMES = {
    "text/plain": "text",
    "text/html": "html",
    "text/markdown": "markdown",
    "image/svg+xml": "svg",
    "image/png": "png",
    "image/jpeg": "jpeg",
    "application/pdf": "pdf",
    "text/latex": "latex",
    "application/json": "json",
    "application/javascript": "javascript",
    DATA: "data",
    CHART: "chart",
}
_RESERVED = {"type", "is_main_result", "extra"}


class Publisher:
    def __init__(self, channel):
        self._channel = channel
        self._held_back = False

    def publish(self, value, is_main_result=False):
        # A class that shows itself does so by calling `display`.
        show = getattr(type(value), "_ipython_display_", None)
        if show is not None and not isinstance(value, type):
            try:
                show(value)
                return
            except NotImplementedError:
                pass
        self._send(bundle_of(value), is_main_result)

    def display(self, *values, raw=False, include=None, exclude=None, metadata=None, display_id=None, **_options):
        """Shows values, or with `raw` forms by media type, as IPython.display.display does."""
        for value in values:
            if raw:
                self._send({mime: portable(form) for mime, form in value.items()}, False)
            else:
                self.publish(value)

    @contextlib.contextmanager
    def held_back(self):
        """Shows nothing meanwhile."""
        before, self._held_back = self._held_back, True
        try:
            yield
        finally:
            self._held_back = before

    def _send(self, bundle, is_main_result):
        if self._held_back:
            return
        event = {"type": "result"}
        # The JavaScript client finds types of its own invention beside the others, the Python client in `extra`.
        extra = {}
        for mime, form in bundle.items():
            name = _NAMES.get(mime)
            if name is None:
                extra[mime] = form
                if mime not in _RESERVED:
                    event[mime] = form
            else:
                event[name] = _without_quotes(form) if name == "text" else form
        event["extra"] = extra
        event["is_main_result"] = is_main_result
        self._channel.send(event)


def _without_quotes(text):
    """The text of a string is the string, not its literal."""
    quoted = len(text) > 1 and text[0] in "'\"" and text[0] == text[-1]
    return text[1:-1] if quoted else text
