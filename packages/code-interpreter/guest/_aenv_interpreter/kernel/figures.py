"""A backend of matplotlib: drawn by Agg, shown as results of the cell with the data that they were drawn from."""

import io
import sys

from matplotlib import _pylab_helpers as registry
from matplotlib.backend_bases import FigureManagerBase, _Backend
from matplotlib.backends.backend_agg import FigureCanvasAgg

from .charts import chart_of
from .mime import CHART


@_Backend.export
class _ClientBackend(_Backend):
    FigureCanvas = FigureCanvasAgg
    FigureManager = FigureManagerBase

    @staticmethod
    def show(*_arguments, **_options):
        shell = sys.modules["__main__"].get_ipython()
        show_all(shell.publisher)


def show_all(publisher):
    """Shows all figures that are open, and closes them, if they are ours."""
    import matplotlib

    if matplotlib.get_backend() != f"module://{__name__}":
        return
    try:
        for manager in registry.Gcf.get_all_fig_managers():
            publisher.publish(manager.canvas.figure)
    finally:
        registry.Gcf.destroy_all()


def forms_of(figure):
    """@returns a figure's picture, and its data where they are understood"""
    if not figure.axes and not figure.lines and not figure.images:
        return {}
    picture = io.BytesIO()
    figure.savefig(picture, format="png", bbox_inches="tight", facecolor=figure.get_facecolor())
    forms = {"image/png": picture.getvalue()}
    try:
        chart = chart_of(figure)
    except Exception:
        # A picture without data is better than none; charts of third parties may be anything.
        chart = None
    if chart is not None:
        forms[CHART] = chart
    return forms
