"""Commands of the shell from a cell: `!command` and `value = !command`."""

import re
import subprocess
import sys

_PLACEHOLDER = re.compile(r"\{([^{}]+)\}|\$\$|\$([A-Za-z_]\w*)")


class Lines(list):
    """What a command printed, by lines, in the forms that notebooks use."""

    n = nlstr = property("\n".join)
    s = spstr = property(" ".join)
    l = list = property(lambda self: self)


def system(shell, command):
    """Runs a command; its output is the cell's. Its exit code is kept as `_exit_code`."""
    sys.stdout.flush()
    sys.stderr.flush()
    _wait(shell, subprocess.Popen(expand(shell, command), shell=True, executable="/bin/bash", stdin=subprocess.DEVNULL))


def getoutput(shell, command, split=True):
    """@returns the lines that a command prints, both of its streams; the text when they are not to be split"""
    process = subprocess.Popen(
        expand(shell, command),
        shell=True,
        executable="/bin/bash",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    output = process.stdout.read().decode("utf-8", "replace")
    _wait(shell, process)
    return Lines(output.splitlines()) if split else output


def expand(shell, command):
    """Puts values of cells in place of `{expression}` and `$name`; what is no value of theirs stays for the shell."""

    def replace(match):
        expression, name = match.groups()
        if match[0] == "$$":
            return "$"
        if expression is None:
            return str(shell.user_ns[name]) if name in shell.user_ns else match[0]
        try:
            return str(eval(expression, shell.user_ns))
        except Exception:
            return match[0]

    return _PLACEHOLDER.sub(replace, command)


def _wait(shell, process):
    status = process.wait()
    shell.user_ns["_exit_code"] = status
    # The interrupt went to the command, and is meant for the cell.
    if status == -2 or status == 130:
        raise KeyboardInterrupt
