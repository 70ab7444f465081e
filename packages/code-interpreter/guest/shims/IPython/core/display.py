"""Where older code looks for what is in IPython.display."""

from ..display import *  # noqa: F403
