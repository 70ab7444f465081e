"""All contexts of the sandbox: one by default for each language, and those that clients make."""

import os

from .context import Context
from .languages import load, normalize


class ContextError(Exception):
    """An answer to a request: a status of HTTP and a text."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class Contexts:
    def __init__(self, loop, home):
        """`home` is the folder where contexts work unless told otherwise."""
        self._loop = loop
        self._home = home
        self._contexts = {}
        self._defaults = {}
        # They are listed from the beginning; their kernels start when they are needed.
        for language in ("python", "javascript"):
            if load(language) is not None:
                self.default(language)

    def list(self):
        return list(self._contexts.values())

    def get(self, context_id):
        if context_id == "default":
            return self.default("python")
        context = self._contexts.get(context_id)
        if context is None:
            raise ContextError(404, f"Context {context_id} not found")
        return context

    def default(self, language):
        """The context of cells that name only a language, made anew after it was removed."""
        name = normalize(language)
        context = self._contexts.get(self._defaults.get(name))
        if context is None:
            context = self._add(name, self._home)
            self._defaults[name] = context.id
        return context

    def create(self, language, cwd):
        context = self._add(normalize(language), cwd or self._home)
        context.start()
        return context

    def remove(self, context_id):
        context = self.get(context_id)
        del self._contexts[context.id]
        context.close()

    def close(self):
        for context in self.list():
            self.remove(context.id)

    def try_out(self, language, done):
        """Starts a kernel that is gone afterwards: what it reads from the disk is in memory then."""
        if load(language) is None:
            done()
            return
        context = self._add(language, self._home)

        def end():
            self.remove(context.id)
            self._loop.soon(done)

        context.start(end)

    def _add(self, language, cwd):
        module = load(language)
        if module is None:
            # Of all answers clients show the text of this one.
            raise ContextError(404, f"Language {language} is not available in this sandbox")
        if not os.path.isabs(cwd):
            cwd = os.path.join(self._home, cwd)
        if "\0" in cwd or not os.path.isdir(cwd):
            raise ContextError(404, f"Failed to set working directory: {cwd} is not a folder")
        context = Context(self._loop, _new_id(), language, cwd, module)
        self._contexts[context.id] = context
        return context


def _new_id():
    """A random UUID (RFC 9562, version 4), without the module that costs as much as the rest of the start."""
    bits = bytearray(os.urandom(16))
    bits[6] = bits[6] & 0x0F | 0x40
    bits[8] = bits[8] & 0x3F | 0x80
    text = bits.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
