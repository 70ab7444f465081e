"""The data behind a figure of matplotlib, in the shapes that @e2b/code-interpreter knows as charts."""

import re

from . import chart_boxes, chart_points
from .mime import to_json

_UNIT = re.compile(r"\s\((.*?)\)|\[(.*?)\]").search


def chart_of(figure):
    """@returns the chart of a figure, one of charts when it has several axes; None when nothing is drawn"""
    axes = figure.get_axes()
    if not any(ax.has_data() for ax in axes):
        return None
    if len(axes) == 1:
        return to_json(_chart_of_axes(axes[0]), str)
    title = figure._suptitle.get_text() if figure._suptitle is not None else ""
    return to_json({"type": "superchart", "title": title, "elements": [_chart_of_axes(ax) for ax in axes]}, str)


def _chart_of_axes(ax):
    kind = _kind(ax)
    chart = {"type": kind, "title": ax.get_title() or None}
    if kind in ("unknown", "pie"):
        return {**chart, "elements": chart_boxes.wedges(ax) if kind == "pie" else []}
    labels = _labels(ax)
    if kind in ("line", "scatter"):
        elements = chart_points.lines(ax) if kind == "line" else chart_points.clouds(ax)
        return {**chart, **labels, **chart_points.scales(ax), "elements": elements}
    turned, elements = chart_boxes.bars(ax) if kind == "bar" else chart_boxes.boxes(ax)
    return {**chart, **(_turned(labels) if turned else labels), "elements": elements}


def _kind(ax):
    """What is drawn, by the artists that the axes hold; texts say nothing."""
    from matplotlib.collections import PathCollection
    from matplotlib.lines import Line2D
    from matplotlib.patches import PathPatch, Rectangle, Wedge
    from matplotlib.text import Text

    artists = [artist for artist in ax._children if not isinstance(artist, Text)]
    if all(isinstance(artist, Line2D) for artist in artists):
        return "line"
    if all(isinstance(artist, (PathPatch, Line2D)) for artist in artists):
        return "box_and_whisker"
    artists = [artist for artist in artists if not (isinstance(artist, Line2D) and chart_points.is_guide(artist))]
    for kind, artist_type in (("scatter", PathCollection), ("pie", Wedge), ("bar", Rectangle)):
        if artists and all(isinstance(artist, artist_type) for artist in artists):
            return kind
    return "unknown"


def _labels(ax):
    x, y = ax.get_xlabel() or None, ax.get_ylabel() or None
    return {"x_label": x, "y_label": y, "x_unit": _unit(x), "y_unit": _unit(y)}


def _unit(label):
    """What stands in brackets at the end of a label."""
    match = _UNIT(label) if label else None
    return (match[1] or match[2]) if match else None


def _turned(labels):
    return {name: labels[("y" if name[0] == "x" else "x") + name[1:]] for name in labels}
