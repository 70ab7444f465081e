"""Starts the server: `main.py [--host H] [--port N] [--envd PORT | --no-envd] [--home FOLDER]`."""

import sys

from _aenv_interpreter.server import serve


def parse(arguments):
    options = {"host": "0.0.0.0", "port": 49999, "envd_port": 49983, "home": "/home/user"}
    words = iter(arguments)
    for word in words:
        if word == "--no-envd":
            options["envd_port"] = None
        elif word in ("--port", "--envd"):
            options["port" if word == "--port" else "envd_port"] = int(next(words))
        elif word in ("--host", "--home"):
            options[word[2:]] = next(words)
        else:
            sys.exit(f"unknown option: {word}")
    return options


serve(ready=lambda port: print(f"listening on port {port}", flush=True), **parse(sys.argv[1:]))
