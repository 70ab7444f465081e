from .. import get_ipython  # noqa: F401
