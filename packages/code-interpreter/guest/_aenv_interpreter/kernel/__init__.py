"""The Python kernel: runs in a fork of the server and reads cells from a pipe."""
