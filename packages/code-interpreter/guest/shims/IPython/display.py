"""Values that show themselves as something, and `display`."""

from os import PathLike, fspath

__all__ = [
    "Code",
    "DisplayHandle",
    "DisplayObject",
    "HTML",
    "IFrame",
    "Image",
    "JSON",
    "Javascript",
    "Latex",
    "Markdown",
    "Math",
    "Pretty",
    "SVG",
    "clear_output",
    "display",
    "display_html",
    "display_jpeg",
    "display_json",
    "display_latex",
    "display_markdown",
    "display_pdf",
    "display_png",
    "display_svg",
    "publish_display_data",
    "set_matplotlib_formats",
    "update_display",
]


def display(*values, **options):
    """Shows values to the client of the cell; without a kernel, prints them."""
    from . import get_ipython

    shell = get_ipython()
    if shell is None:
        print(*map(repr, values))
    else:
        shell.publisher.display(*values, **options)
    return DisplayHandle(options["display_id"]) if options.get("display_id") else None


class DisplayHandle:
    """What is shown once is not changed any more, so an update is shown anew."""

    def __init__(self, display_id=None):
        self.display_id = display_id

    def display(self, value, **options):
        display(value, **options)

    update = display


def update_display(value, *, display_id=None, **options):
    display(value, **options)


def publish_display_data(data, metadata=None, **_options):
    display(data, raw=True)


def clear_output(wait=False):
    """Clients keep what they have got."""


def set_matplotlib_formats(*_formats, **_options):
    """Figures are PNG."""


def _of_type(method, mime):
    def show(*values, raw=False, **_options):
        for value in values:
            form = value if raw else getattr(value, method)()
            display({mime: form}, raw=True)

    return show


display_html = _of_type("_repr_html_", "text/html")
display_jpeg = _of_type("_repr_jpeg_", "image/jpeg")
display_json = _of_type("_repr_json_", "application/json")
display_latex = _of_type("_repr_latex_", "text/latex")
display_markdown = _of_type("_repr_markdown_", "text/markdown")
display_pdf = _of_type("_repr_pdf_", "application/pdf")
display_png = _of_type("_repr_png_", "image/png")
display_svg = _of_type("_repr_svg_", "image/svg+xml")


class DisplayObject:
    """Data out of an argument, a file or a URL."""

    _mode = "r"

    def __init__(self, data=None, url=None, filename=None, metadata=None):
        if isinstance(data, PathLike):
            data, filename = None, fspath(data)
        elif isinstance(data, str) and url is None and filename is None and data.startswith(("http://", "https://")):
            data, url = None, data
        self.data = data
        self.url = url
        self.filename = filename
        self.metadata = metadata or {}
        self.reload()

    def __repr__(self):
        return f"<IPython.core.display.{type(self).__name__} object>"

    def reload(self):
        if self.filename is not None:
            with open(self.filename, self._mode, encoding=None if "b" in self._mode else "utf-8") as file:
                self.data = file.read()
        elif self.url is not None and self.data is None:
            from urllib.request import urlopen

            with urlopen(self.url) as answer:
                data = answer.read()
            self.data = data if "b" in self._mode else data.decode(answer.headers.get_content_charset("utf-8"))


class Pretty(DisplayObject):
    def __repr__(self):
        return str(self.data)


class HTML(DisplayObject):
    def _repr_html_(self):
        return self.data

    __html__ = _repr_html_


class Markdown(DisplayObject):
    def _repr_markdown_(self):
        return self.data


class Latex(DisplayObject):
    def _repr_latex_(self):
        return self.data


class Math(DisplayObject):
    def _repr_latex_(self):
        return f"$\\displaystyle {self.data.strip('$')}$"


class SVG(DisplayObject):
    def _repr_svg_(self):
        return self.data


class JSON(DisplayObject):
    def __init__(self, data=None, url=None, filename=None, expanded=False, metadata=None, root="root", **_options):
        super().__init__(data, url, filename, metadata)

    def _repr_json_(self):
        import json

        return json.loads(self.data) if isinstance(self.data, str) else self.data


class Javascript(DisplayObject):
    def __init__(self, data=None, url=None, filename=None, lib=None, css=None):
        super().__init__(data, url, filename)

    def _repr_javascript_(self):
        return self.data


class Code(DisplayObject):
    def __init__(self, data=None, url=None, filename=None, language=None):
        super().__init__(data, url, filename)
        self.language = language

    def __repr__(self):
        return self.data


class Image(DisplayObject):
    _mode = "rb"

    def __init__(self, data=None, url=None, filename=None, format=None, embed=None, width=None, height=None, **options):
        if isinstance(data, str) and not data.startswith(("http://", "https://")) and len(data) < 4096:
            data, filename = None, data
        super().__init__(data, url, filename, options.get("metadata"))
        self.width = width
        self.height = height
        self.format = (format or self._guess()).lower().replace("jpg", "jpeg")

    def _guess(self):
        data = self.data if isinstance(self.data, bytes) else b""
        if data.startswith(b"\xff\xd8"):
            return "jpeg"
        return "gif" if data.startswith(b"GIF8") else "png"

    def _repr_png_(self):
        return self.data if self.format == "png" else None

    def _repr_jpeg_(self):
        return self.data if self.format == "jpeg" else None

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"image/gif": self.data} if self.format == "gif" else None


class IFrame:
    def __init__(self, src, width, height, extras=None, **parameters):
        from html import escape
        from urllib.parse import urlencode

        query = f"?{urlencode(parameters)}" if parameters else ""
        self.html = f'<iframe width="{width}" height="{height}" src="{escape(src + query)}" frameborder="0"></iframe>'

    def _repr_html_(self):
        return self.html
