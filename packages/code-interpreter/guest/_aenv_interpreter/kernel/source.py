"""
From what a client sends to Python: common indentation goes, and the lines that notebooks have beyond Python
(`!command`, `%magic`, `%%magic` for a whole cell) become calls. Only lines that Python refuses are looked at, so that
valid code and texts in quotes stay as they are.
"""

import re

_SPECIAL = re.compile(r"(\s*)((?:[A-Za-z_][\w., \[\]]*=\s*)?)(!!?|%)(?!=)(.*)", re.DOTALL).fullmatch
_MAGIC = re.compile(r"(\w+)(.*)", re.DOTALL).fullmatch


def prepare(code, parse):
    """
    @param parse gives the tree of a source or raises SyntaxError
    @returns the source that was parsed in the end, and its tree
    """
    source = _call_cell_magic(code) or _dedent(code)
    while True:
        try:
            return source, parse(source)
        except SyntaxError as error:
            better = _replace_special(source, error.lineno or 0)
            if better is None:
                raise
            source = better


def _dedent(code):
    """Takes the indentation of the first line off all lines that have it."""
    lines = code.split("\n")
    first = next((line for line in lines if line.strip() != ""), "")
    indent = first[: len(first) - len(first.lstrip())]
    if indent == "":
        return code
    return "\n".join(line.removeprefix(indent) for line in lines)


def _call_cell_magic(code):
    """@returns source for a cell that begins with %%, else None"""
    head, _, body = code.lstrip().partition("\n")
    if not head.startswith("%%"):
        return None
    name, _, line = head[2:].strip().partition(" ")
    return f"get_ipython().run_cell_magic({name!r}, {line.strip()!r}, {body!r})"


def _replace_special(source, number):
    """@returns the source with the special line of that number replaced, else with the first one there is, else None"""
    lines = source.split("\n")
    order = [number - 1] if 0 < number <= len(lines) else []
    for index in order + list(range(len(lines))):
        replaced, taken = _replace_line(lines, index)
        if replaced is not None:
            # Empty lines in place of those that were joined, so that numbers in tracebacks stay right.
            lines[index : index + taken] = [replaced] + [""] * (taken - 1)
            return "\n".join(lines)
    return None


def _replace_line(lines, index):
    """@returns the call that stands for a special line, and the number of lines that it takes; (None, 0) for others"""
    if _SPECIAL(lines[index]) is None:
        return None, 0
    text = lines[index]
    taken = 1
    while text.endswith("\\") and index + taken < len(lines):
        text = f"{text[:-1]} {lines[index + taken].lstrip()}"
        taken += 1
    indent, target, kind, rest = _SPECIAL(text).groups()
    if kind != "%":
        function = "getoutput" if target or kind == "!!" else "system"
        return f"{indent}{target}get_ipython().{function}({rest.strip()!r})", taken
    magic = _MAGIC(rest)
    if magic is None:
        return None, 0
    name, line = magic.groups()
    return f"{indent}{target}get_ipython().run_line_magic({name!r}, {line.strip()!r})", taken
