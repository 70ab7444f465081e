"""A value in all the forms that it has: the methods that notebooks ask for, and the types that libraries register."""

import binascii
import math
import sys
import traceback

# what a class may define, and the type that it stands for
_METHODS = (
    ("_repr_html_", "text/html"),
    ("_repr_markdown_", "text/markdown"),
    ("_repr_svg_", "image/svg+xml"),
    ("_repr_png_", "image/png"),
    ("_repr_jpeg_", "image/jpeg"),
    ("_repr_pdf_", "application/pdf"),
    ("_repr_latex_", "text/latex"),
    ("_repr_json_", "application/json"),
    ("_repr_javascript_", "application/javascript"),
)
DATA = "e2b/data"
CHART = "e2b/chart"
_WIDTH = 79
_MAX_DEPTH = 100


def bundle_of(value):
    """@returns the forms of a value by media type; bytes are base64 already"""
    bundle = {"text/plain": _plain(value)}
    # A class as a value has its instances' methods, which cannot be called.
    if not isinstance(value, type):
        for method, mime in _METHODS:
            form = _call(value, method)
            if form is not None:
                bundle[mime] = form
        whole = _call(value, "_repr_mimebundle_", include=None, exclude=None)
        if isinstance(whole, dict):
            bundle.update(whole)
    bundle.update(_registered(value))
    return {mime: portable(form) for mime, form in bundle.items() if form is not None}


def portable(form):
    """A form as it can travel."""
    if isinstance(form, (bytes, bytearray)):
        return binascii.b2a_base64(form, newline=False).decode("ascii")
    return to_json(form, str)


def to_json(value, other=None, depth=0):
    """
    @param other what becomes of values that JSON has no place for; raises TypeError when absent
    @returns the value with nothing but what JSON has
    """
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        # NaN is no JSON, whatever Python's module says.
        return float(value) if math.isfinite(value) else None
    if depth < _MAX_DEPTH:
        if isinstance(value, dict):
            return {_key(name): to_json(item, other, depth + 1) for name, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [to_json(item, other, depth + 1) for item in value]
        if hasattr(value, "isoformat"):
            # pandas has a moment that is none, and is not equal to itself either.
            return None if value != value else value.isoformat()
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(value, (numpy.generic, numpy.ndarray)):
            return to_json(value.item() if value.ndim == 0 else value.tolist(), other, depth + 1)
    if other is None:
        raise TypeError(f"{type(value).__name__} has no place in JSON")
    return other(value)


def _key(name):
    if isinstance(name, str):
        return name
    if name is None or isinstance(name, (bool, int, float)):
        return str(name)
    return name.isoformat() if hasattr(name, "isoformat") else str(name)


def _plain(value):
    try:
        text = repr(value)
        if len(text) > _WIDTH and isinstance(value, (dict, list, set, tuple)):
            import pprint

            return pprint.pformat(value, width=_WIDTH, sort_dicts=False)
        return text
    except Exception:
        _tell("__repr__")
        return f"<{type(value).__name__}>"


def _call(value, method, **options):
    """@returns what a method of the value gives, without the metadata that may come along; None where there is none"""
    function = getattr(type(value), method, None)
    if function is None:
        # Objects that answer to any name have none of these.
        return None
    try:
        form = function(value, **options)
    except NotImplementedError:
        return None
    except Exception:
        _tell(method)
        return None
    return form[0] if isinstance(form, tuple) and len(form) == 2 else form


def _registered(value):
    """Forms that libraries without such methods would register; a value of theirs exists only when they are loaded."""
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(value, pandas.DataFrame):
        return {DATA: value.to_dict(orient="list")}
    figure = sys.modules.get("matplotlib.figure")
    if figure is not None and isinstance(value, figure.Figure):
        from .figures import forms_of

        return forms_of(value)
    if isinstance(value, (dict, list)):
        try:
            return {"application/json": to_json(value)}
        except (RecursionError, TypeError):
            return {}
    return {}


def _tell(method):
    """As in a notebook: a form that fails is told on stderr, and the others are shown."""
    print(f"{method} failed:", file=sys.stderr)
    traceback.print_exc()
