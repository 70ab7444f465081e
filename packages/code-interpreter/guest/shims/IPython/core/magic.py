"""Decorators of magics: accepted, so that modules which define some can be imported."""


def _leave(function=None, *_arguments):
    return function if callable(function) else lambda decorated: decorated


register_line_magic = register_cell_magic = register_line_cell_magic = _leave
magics_class = line_magic = cell_magic = line_cell_magic = _leave


class Magics:
    def __init__(self, shell=None, **_options):
        self.shell = shell
