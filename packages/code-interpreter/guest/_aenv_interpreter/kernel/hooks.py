"""
What is done to libraries when a cell imports them: figures of matplotlib are shown instead of opening windows, and so
are images of Pillow. Nothing is imported here that is not there already.
"""

import sys


def install(shell):
    hooks = {
        "matplotlib": _use_figures,
        "PIL.Image": _show_saved,
        "PIL.ImageShow": _show_shown,
    }
    # The server may have loaded some of them ahead.
    for name in [name for name in hooks if name in sys.modules]:
        hooks.pop(name)(sys.modules[name], shell)
    sys.meta_path.insert(0, _Finder(hooks, shell))


def after_cell(shell):
    """Figures that a cell leaves open are shown, as in a notebook."""
    if "matplotlib.pyplot" in sys.modules:
        from .figures import show_all

        show_all(shell.publisher)


class _Finder:
    """Finds modules as the other finders do, and has a function called when one of a few has been loaded."""

    def __init__(self, hooks, shell):
        self._hooks = hooks
        self._shell = shell

    def find_spec(self, name, path=None, target=None):
        hook = self._hooks.get(name)
        if hook is None:
            return None
        del self._hooks[name]
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Loader(spec.loader, hook, self._shell)
                return spec
        return None


class _Loader:
    def __init__(self, loader, hook, shell):
        self._loader = loader
        self._hook = hook
        self._shell = shell

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._hook(module, self._shell)


def _use_figures(matplotlib, _shell):
    # Not by the environment: scripts that a cell runs would look for our module, too.
    import os

    if "MPLBACKEND" not in os.environ:
        matplotlib.use(f"module://{__package__}.figures")


def _show_saved(module, shell):
    """Who saves an image wants to see it."""
    save = module.Image.save

    def save_and_show(image, target, format=None, **options):
        save(image, target, format, **options)
        if isinstance(target, str):
            shell.publisher.publish(image)

    module.Image.save = save_and_show


def _show_shown(module, shell):
    class Client(module.Viewer):
        def show(self, image, **_options):
            shell.publisher.publish(image)
            return True

    module.register(Client(), 0)
