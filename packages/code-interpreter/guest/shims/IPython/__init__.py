"""The part of IPython that cells rely on, over this kernel. IPython itself would have to be started first."""

import sys

version_info = (8, 30, 0, "")
__version__ = "8.30.0"


def get_ipython():
    """The shell of this context; None outside of one."""
    return getattr(sys.modules.get("__main__"), "get_ipython", lambda: None)()


from .display import display  # noqa: E402
