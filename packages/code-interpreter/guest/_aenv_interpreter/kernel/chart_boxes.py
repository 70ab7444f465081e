"""Charts of areas: bars, boxes with whiskers, pies."""

# A place on an axis is found again up to this share of what is around it.
_NEAR = 1e-6


def wedges(ax):
    return [
        {"label": wedge.get_label(), "angle": round(abs(wedge.theta2 - wedge.theta1), 4), "radius": wedge.r}
        for wedge in ax.patches
    ]


def bars(ax):
    """@returns whether the bars lie, and one element for each of them"""
    lying = any(getattr(container, "orientation", None) == "horizontal" for container in ax.containers)
    names = _names(ax.yaxis if lying else ax.xaxis)
    elements = []
    for container in ax.containers:
        group = container.get_label()
        if group.startswith("_container"):
            group = f"Group {group[10:]}"
        for bar in container:
            middle = bar.get_y() + bar.get_height() / 2 if lying else bar.get_x() + bar.get_width() / 2
            value = bar.get_width() if lying else bar.get_height()
            elements.append({"label": names(middle), "group": group, "value": float(value)})
    return lying, elements


def boxes(ax):
    """@returns whether the boxes lie, and one element for each of them"""
    lines = [([float(x) for x in line.get_xdata()], [float(y) for y in line.get_ydata()]) for line in ax.lines]
    outlines = [box.get_path().vertices for box in ax.patches]
    lying = not any(_crosses(x, y, outline) for x, y in lines for outline in outlines)
    if lying:
        lines = [(y, x) for x, y in lines]
        outlines = [outline[:, ::-1] for outline in outlines]
    names = _names(ax.yaxis if lying else ax.xaxis)
    elements = []
    for outline in outlines:
        left, right = float(outline[:, 0].min()), float(outline[:, 0].max())
        low, high = float(outline[:, 1].min()), float(outline[:, 1].max())
        mine = [(x, y) for x, y in lines if x and all(left <= place <= right for place in x)]
        pairs = [y for x, y in mine if len(y) == 2]
        across = [y[0] for x, y in mine if len(y) == 2 and x[0] != x[1] and y[0] == y[1] and low <= y[0] <= high]
        elements.append(
            {
                "label": names((left + right) / 2),
                "min": min([min(y) for y in pairs if _same(max(y), low)], default=low),
                "first_quartile": low,
                "median": across[0] if across else None,
                "third_quartile": high,
                "max": max([max(y) for y in pairs if _same(min(y), high)], default=high),
                "outliers": [value for x, y in mine if _is_cloud(x, y, low, high) for value in y],
            }
        )
    return lying, elements


def _crosses(x, y, outline):
    """Whether a line lies across a box that stands: its median."""
    if len(x) != 2 or x[0] == x[1] or y[0] != y[1]:
        return False
    inside = outline[:, 0].min() <= min(x) and max(x) <= outline[:, 0].max()
    return bool(inside and outline[:, 1].min() <= y[0] <= outline[:, 1].max())


def _is_cloud(x, y, low, high):
    """Outliers are points over one place, outside of the box; a whisker is two of them, from the box on."""
    whisker = len(y) == 2 and (_same(max(y), low) or _same(min(y), high))
    return all(place == x[0] for place in x) and not whisker and not any(low <= value <= high for value in y)


def _same(a, b):
    return abs(a - b) <= _NEAR * max(abs(a), abs(b), 1)


def _names(axis):
    """@returns the name of a place on an axis: the label of the nearest tick, unless it is another one's"""
    ticks = [(float(tick), label.get_text()) for tick, label in zip(axis.get_ticklocs(), axis.get_ticklabels())]
    gaps = [abs(b[0] - a[0]) for a, b in zip(ticks, ticks[1:])]
    reach = min(gaps, default=1) / 2

    def name(place):
        near = min(ticks, key=lambda tick: abs(tick[0] - place), default=None)
        if near is not None and near[1] != "" and abs(near[0] - place) <= reach:
            return near[1]
        return f"{place:g}"

    return name
