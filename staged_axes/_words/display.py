"""Plain rows into tables, and values into short forms.

In come strings, and values of which only the shape, the dtype and the type's name are
looked at; out goes text. It knows nothing of axes and decisions, and a user's `repr` is
never called: it may be huge, and it may raise.
"""

import html
import io
import os
import re
import shutil
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from attrs import frozen

if TYPE_CHECKING:
    from rich.console import Group

_LETTERS = {"bfloat": "bf", "float": "f", "uint": "u", "int": "i", "complex": "c"}
_PLAIN_ARRAYS = {"numpy": ("ndarray", "generic"), "jax": ("Array", "ShapeDtypeStruct")}
_LONGEST_NAME = 40
_NARROWEST_COLUMN = 12


def short(value: object) -> str:
    """What a value is, never what is in it.

    Example:
      >>> import numpy as np
      >>> short(np.zeros((32, 4), np.float32)), short(3), short(len), short([1, 2])
      ('f32[32,4]', 'int', 'function len', 'list')
    """
    name = cut(type(value).__name__, _LONGEST_NAME)
    if value is None:
        return "None"
    try:
        if form := _array_form(value):
            return form if _is_plain_array(value) else f"{name} {form}"
        if isinstance(value, type):
            return f"class {cut(value.__name__, _LONGEST_NAME)}"
        called = getattr(value, "__name__", None) if callable(value) else None
        if isinstance(called, str):
            return f"function {cut(called, _LONGEST_NAME)}"
    except Exception:  # an attribute of a user's object may raise anything
        return name
    return name


@frozen
class Table:
    """A title, a header, rows of cells, a footer; each way to show it is a method.

    There is a name for each column; if all of them are empty, no header is shown.

    Example:
      >>> table = Table("Axes", ("path", "array"), (("value.x", "f32[3]"),))
      >>> print(table.plain())
      Axes
      <BLANKLINE>
      path     array
      value.x  f32[3]
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    footer: str = ""

    def plain(self, width: int | None = None) -> str:
        """Aligned columns, for files, logs and errors.

        Args:
          width: Cells are cut in their middle until the lines are no longer than this,
            the widest column first, though none becomes narrower than 12 characters.
        """
        header = [self.header] if self._has_header() else []
        lines = [tuple(map(_printable, line)) for line in [*header, *self.rows]]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        while (
            width is not None
            and sum(widths) + 2 * (len(widths) - 1) > width
            and max(widths) > _NARROWEST_COLUMN
        ):
            widths[widths.index(max(widths))] -= 1
        body = [
            "  ".join(
                cut(cell, room).ljust(room)
                for cell, room in zip(line, widths, strict=True)
            ).rstrip()
            for line in lines
        ]
        parts = [self.title, "\n".join(body), self.footer]
        return "\n\n".join(part for part in parts if part)

    def html(self) -> str:
        """A table for notebooks, with everything in it escaped."""
        parts = [f"<caption>{html.escape(self.title)}</caption>"] if self.title else []
        if self._has_header():
            parts.append(f"<thead>{_html_row('th', self.header)}</thead>")
        rows = "".join(_html_row("td", row) for row in self.rows)
        parts.append(f"<tbody>{rows}</tbody>")
        if self.footer:
            cell = f'<td colspan="{len(self.header)}">{html.escape(self.footer)}</td>'
            parts.append(f"<tfoot><tr>{cell}</tr></tfoot>")
        return f"<table>{''.join(parts)}</table>"

    def text(self) -> str:
        """With colour where standard output is a terminal that takes it, else plain."""
        if not _takes_colour():
            return self.plain()
        from rich.console import Console

        out = io.StringIO()
        columns = shutil.get_terminal_size().columns
        Console(file=out, force_terminal=True, width=columns).print(self)
        return out.getvalue().rstrip("\n")

    def __str__(self) -> str:
        return self.text()

    def __rich__(self) -> "Group":
        """The same layout for rich, which folds long cells instead of cutting them."""
        from rich.console import Group
        from rich.table import Table as RichTable
        from rich.text import Text

        grid = RichTable(
            box=None,
            pad_edge=False,
            padding=(0, 2, 0, 0),
            header_style="bold",
            show_header=self._has_header(),
        )
        for i, name in enumerate(self.header):
            grid.add_column(Text(name), overflow="fold", style="cyan" if i == 0 else "")
        for row in self.rows:
            # As Text, because a plain "[0]" would be taken for markup.
            grid.add_row(*(Text(_printable(cell)) for cell in row))
        title = [Text(self.title, style="bold"), Text()] if self.title else []
        footer = [Text(), Text(self.footer, style="dim")] if self.footer else []
        return Group(*title, grid, *footer)

    def _has_header(self) -> bool:
        """Whether any column has a name."""
        return any(self.header)


def _array_form(value: Any) -> str | None:
    """The dtype and shape of anything that has both."""
    shape = getattr(value, "shape", None)
    name = getattr(getattr(value, "dtype", None), "name", None)
    if not isinstance(shape, tuple) or not isinstance(name, str):
        return None
    letters = re.sub(r"^(b?float|u?int|complex)(?=\d)", lambda m: _LETTERS[m[0]], name)
    return f"{letters}[{','.join(map(str, shape))}]"


def _is_plain_array(value: object) -> bool:
    """Whether a value is an array of NumPy's or JAX's own, tracers included."""
    # A library that was never imported has made no array: nothing is imported to ask.
    return any(
        module in sys.modules and isinstance(value, getattr(sys.modules[module], name))
        for module, names in _PLAIN_ARRAYS.items()
        for name in names
    )


def _takes_colour() -> bool:
    """Whether standard output is a terminal that is meant to show colour."""
    # Standard output may be None, or anything with a `write`.
    is_terminal = getattr(sys.stdout, "isatty", lambda: False)()
    is_dumb = os.environ.get("TERM", "").lower() in ("dumb", "unknown")
    return is_terminal and not is_dumb and not os.environ.get("NO_COLOR")


def _html_row(tag: str, cells: Iterable[str]) -> str:
    """One row of an HTML table."""
    inner = "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells)
    return f"<tr>{inner}</tr>"


def cut(text: str, width: int) -> str:
    """Text of at most this width, as both ends of it tell more than the middle."""
    if len(text) <= width:
        return text
    tail = (width - 3) // 2
    return f"{text[: width - 3 - tail]}...{text[len(text) - tail :]}"


def _printable(text: str) -> str:
    """Text on one line: what would move the cursor is escaped."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
