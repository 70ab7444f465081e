"""
The languages. A module of each is imported when it is first needed and has

- `available()`: whether it can be run here,
- `clean(name, data)`: output without what no cell has asked for,
- `Kernel(loop, listener, context)` with its `process`, `execute(cell)`, `interrupt(count)` for the cell of that number,
  and `settle()`, which makes the kernel say that it is ready, after an interrupt.
"""

ALIASES = {"js": "javascript", "ts": "typescript", "py": "python", "sh": "bash"}


def normalize(language):
    """@returns the name under which a language is known, whether or not it can be run here"""
    name = (language or "python").strip().lower()
    return ALIASES.get(name, name)


def load(language):
    """@returns the module of a language, or None when it cannot be run here"""
    if language == "python":
        from . import python as module
    elif language in ("javascript", "typescript"):
        from . import node as module
    elif language == "bash":
        from . import bash as module
    else:
        return None
    return module if module.available() else None
