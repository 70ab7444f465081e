"""The magics that cells of agents and notebooks use. What only changes how a notebook looks does nothing here."""

import os
import re
import sys
import time

from . import commands

_OPTION = re.compile(r"\s*-([a-z])\s*(\d+)").match


class UsageError(Exception):
    """A magic that does not exist or cannot be used like that."""


def run_line_magic(shell, name, line):
    magic = _LINE.get(name)
    if magic is None:
        raise UsageError(f"Line magic function `%{name}` not found.")
    return magic(shell, line)


def run_cell_magic(shell, name, line, cell):
    magic = _CELL.get(name)
    if magic is None:
        raise UsageError(f"Cell magic `%%{name}` not found.")
    return magic(shell, line, cell)


def _cd(shell, line):
    folder = os.path.expanduser(commands.expand(shell, line).strip("'\"") or "~")
    os.chdir(folder)
    print(os.getcwd())


def _pip(shell, line):
    shell.system(f"{sys.executable} -m pip {line}")


def _env(shell, line):
    name, separator, value = line.partition("=" if "=" in line else " ")
    if name == "":
        return dict(os.environ)
    if separator == "":
        return os.environ.get(name)
    os.environ[name.strip()] = commands.expand(shell, value.strip())
    print(f"env: {name.strip()}={os.environ[name.strip()]}")
    return None


def _time(shell, _line, code):
    begin, cpu = time.perf_counter(), time.process_time()
    try:
        shell.run_cell(code)
    finally:
        print(f"CPU times: {time.process_time() - cpu:.3g} s")
        print(f"Wall time: {time.perf_counter() - begin:.3g} s")


def _timeit(shell, line, code):
    import timeit

    options, rest = _options(line, "nr")
    # In a cell the line is what is done once before, on a line it is what is measured.
    setup, code = ("pass", rest) if code is None else (rest or "pass", code)
    timer = timeit.Timer(code, setup, globals=shell.user_ns)
    number = options.get("n") or timer.autorange()[0]
    times = [seconds / number for seconds in timer.repeat(options.get("r", 5), number)]
    print(f"{min(times):.3g} s per loop (best of {len(times)} runs, {number:,} loops each)")


def _options(line, names):
    """Takes `-n 5 -r2` off the front of a line."""
    options = {}
    while (match := _OPTION(line)) and match[1] in names:
        options[match[1]] = int(match[2])
        line = line[match.end() :]
    return options, line.strip()


def _script(program):
    def run(shell, line, cell):
        import subprocess

        sys.stdout.flush()
        process = subprocess.Popen([*program, *line.split()], stdin=subprocess.PIPE)
        process.communicate(cell.encode())
        if process.returncode != 0:
            raise subprocess.CalledProcessError(process.returncode, program)

    return run


def _write_file(shell, line, cell):
    words = line.split()
    append = words[:1] == ["-a"]
    path = os.path.expanduser(" ".join(words[1:] if append else words))
    if path == "":
        raise UsageError("%%writefile needs the name of a file")
    exists = os.path.exists(path)
    with open(path, "a" if append else "w", encoding="utf-8") as file:
        file.write(cell)
    print(f"{'Appending to' if append else 'Overwriting' if exists else 'Writing'} {path}")


def _capture(shell, line, cell):
    import contextlib
    import io

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), shell.publisher.held_back():
        shell.run_cell(cell)
    if line:
        shell.user_ns[line.split()[0]] = out.getvalue()


def _show_as(mime):
    return lambda shell, _line, cell: shell.publisher.display({mime: cell}, raw=True)


def _who(shell, _line):
    print("\t".join(sorted(shell.names())) or "Interactive namespace is empty.")


def _nothing(*_arguments):
    return None


_LINE = {
    "cd": _cd,
    "pwd": lambda shell, _line: os.getcwd(),
    "ls": lambda shell, line: shell.system(f"ls {line}"),
    "pip": _pip,
    "sx": lambda shell, line: shell.getoutput(line),
    "system": lambda shell, line: shell.getoutput(line),
    "env": _env,
    "set_env": _env,
    "time": lambda shell, line: _time(shell, line, line),
    "timeit": lambda shell, line: _timeit(shell, line, None),
    "who": _who,
    "reset": lambda shell, _line: shell.clear(),
    **dict.fromkeys(("matplotlib", "config", "load_ext", "reload_ext", "autoreload", "precision", "colors"), _nothing),
}
_CELL = {
    "time": _time,
    "timeit": _timeit,
    "bash": _script(["/bin/bash"]),
    "sh": _script(["/bin/sh"]),
    "script": _script([]),
    "python": _script([sys.executable]),
    "python3": _script([sys.executable]),
    "writefile": _write_file,
    "file": _write_file,
    "capture": _capture,
    "html": _show_as("text/html"),
    "HTML": _show_as("text/html"),
    "markdown": _show_as("text/markdown"),
    "latex": _show_as("text/latex"),
    "svg": _show_as("image/svg+xml"),
    "javascript": _show_as("application/javascript"),
    "js": _show_as("application/javascript"),
}
