"""Errors as clients get them: name, value and a traceback that begins in the cell, with the lines around each call."""

import linecache

_CONTEXT = 2
_RULE = "-" * 75
_NUMBER_WIDTH = 7
# Of endless recursion the ends say enough, and of one frame over and over the first times.
_MAX_FRAMES = 40
_MAX_REPEATS = 3


def describe(error, name):
    """@returns the fields of an error event"""
    kind = type(error).__name__
    return {"name": kind, "value": _text(error), "traceback": _traceback(error, name)}


def _text(error):
    try:
        return str(error)
    except Exception:
        return "<the error cannot be shown>"


def _traceback(error, name):
    parts = []
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        parts.append(_one(error, name))
        if error.__cause__ is not None:
            parts.append("\n\nThe above exception was the direct cause of the following exception:\n\n")
            error = error.__cause__
        elif error.__context__ is not None and not error.__suppress_context__:
            parts.append("\n\nDuring handling of the above exception, another exception occurred:\n\n")
            error = error.__context__
        else:
            error = None
    return "".join(reversed(parts))


def _one(error, name):
    kind = type(error).__name__
    title = f"{kind}{'Traceback (most recent call last)':>{75 - len(kind)}}\n"
    if isinstance(error, SyntaxError) and not _frames(error, name):
        import traceback

        lines = "".join(traceback.format_exception_only(type(error), error))
        return lines.replace(f'File "{name}", line', f"{_place(name)}, line")
    text = f"{_RULE}\n{title}"
    text += "".join(_frames_text(_frames(error, name)))
    return f"{text}{kind}: {_text(error)}{''.join(f'{chr(10)}{note}' for note in getattr(error, '__notes__', ()))}"


def _frames(error, name):
    """The frames from the cell on, as (file, line, function); all of them when the cell is not among them."""
    frames = []
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        frames.append((code.co_filename, trace.tb_lineno, code.co_name))
        trace = trace.tb_next
    first = next((index for index, frame in enumerate(frames) if frame[0].startswith("<cell ")), None)
    if first is None:
        # Raised by the kernel itself, which is of no interest.
        return [frame for frame in frames if "_aenv_interpreter" not in frame[0]]
    return [frame for frame in frames[first:] if "_aenv_interpreter" not in frame[0]]


def _frames_text(frames):
    texts = []
    repeats = 0
    for index, frame in enumerate(frames):
        repeats = repeats + 1 if index > 0 and frame == frames[index - 1] else 0
        last = index + 1 == len(frames) or frames[index + 1] != frame
        if repeats >= _MAX_REPEATS and last:
            texts.append(f"    [... the same frame {repeats - _MAX_REPEATS + 1} times more ...]\n\n")
        elif repeats < _MAX_REPEATS:
            texts.append(_frame(frame))
    if len(texts) > _MAX_FRAMES:
        half = _MAX_FRAMES // 2
        texts[half:-half] = [f"    [... {len(texts) - 2 * half} frames ...]\n\n"]
    return texts


def _frame(frame):
    file, line, function = frame
    separator = ", line " if file.startswith("<cell ") else ":"
    where = "" if function == "<module>" else f", in {function}"
    text = f"{_place(file)}{separator}{line}{where}\n"
    source = linecache.getlines(file)
    first = max(1, line - _CONTEXT)
    for number in range(first, min(len(source), line + _CONTEXT) + 1):
        content = source[number - 1].rstrip()
        margin = f"> {number}".rjust(_NUMBER_WIDTH, "-") if number == line else f"{number:>{_NUMBER_WIDTH}}"
        text += f"{margin} {content}".rstrip() + "\n"
    return text + "\n"


def _place(file):
    return f"Cell In[{file[6:-1]}]" if file.startswith("<cell ") else f"File {file}"
