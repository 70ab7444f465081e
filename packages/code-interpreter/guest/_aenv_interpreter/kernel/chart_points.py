"""Charts of points: lines and scatters, and the scales of their axes."""

from matplotlib.category import StrCategoryConverter
from matplotlib.dates import num2date


def is_guide(line):
    """Whether a line is one of those that only help the eye: two points, straight up or straight across."""
    x, y = line.get_xdata(), line.get_ydata()
    return len(x) == 2 and len(y) == 2 and bool(x[0] == x[1] or y[0] == y[1])


def lines(ax):
    elements = []
    for line in ax.get_lines():
        if is_guide(line):
            continue
        label = line.get_label()
        if label.startswith("_child"):
            label = f"Line {label[6:]}"
        elements.append({"label": label, "points": _points(line.get_xdata(), line.get_ydata())})
    return elements


def clouds(ax):
    elements = []
    for collection in ax.collections:
        offsets = collection.get_offsets()
        x, y = ([_moment(value) if _is_dates(axis) else value for value in column] for axis, column in (
            (ax.xaxis, offsets[:, 0]),
            (ax.yaxis, offsets[:, 1]),
        ))
        elements.append({"label": collection.get_label(), "points": _points(x, y)})
    return elements


def scales(ax):
    """Ticks, their labels and the kind of scale, for both axes."""
    fields = {}
    for name, axis in (("x", ax.xaxis), ("y", ax.yaxis)):
        ticks = [_moment(tick) if _is_dates(axis) else _value(tick) for tick in axis.get_ticklocs()]
        labels = [label.get_text() for label in axis.get_ticklabels()]
        fields[f"{name}_ticks"] = ticks
        fields[f"{name}_tick_labels"] = labels
        fields[f"{name}_scale"] = _scale(axis, ticks, labels)
    return fields


def _scale(axis, ticks, labels):
    if _is_dates(axis):
        return "datetime"
    if axis.get_scale() != "linear":
        return axis.get_scale()
    if isinstance(_converter(axis), StrCategoryConverter):
        return "categorical"
    # Numbers from 0 on under names of one's own are categories as well.
    named = [tick == index and label != str(index) for index, (tick, label) in enumerate(zip(ticks, labels))]
    return "categorical" if named and all(named) and any(labels) else "linear"


def _converter(axis):
    # The attribute has become a method.
    return axis.get_converter() if hasattr(axis, "get_converter") else axis.converter


def _is_dates(axis):
    return "Date" in type(_converter(axis)).__name__


def _moment(tick):
    return num2date(tick).isoformat()


def _points(x, y):
    return [(_value(a), _value(b)) for a, b in zip(x, y)]


def _value(value):
    # Of numpy's moments those in nanoseconds would become plain numbers.
    if getattr(getattr(value, "dtype", None), "kind", "") == "M":
        return str(value.astype("datetime64[s]"))
    return value
