"""Tables and groups as HTML, for notebooks."""

import html

import numpy as np

from ._arrays.arrow import DeviceColumn
from ._arrays.frames import frames_of, frames_of_column, objects_at
from ._keys.strings import listed

ROWS = 10  # that are shown
MOST = 2**20  # keys of tables whose first rows are shown: these cannot be had without the others
_WIDE = 80  # characters of a cell


def _first(column):
    """The first values of a column or an array as Python has them."""
    rows = np.arange(min(ROWS, len(column)))
    if isinstance(column, DeviceColumn):
        return column.take(column.library.of_numpy(rows)).to_pyarrow().to_pylist()
    try:
        if frames_of_column(column):
            return list(objects_at(column, rows))
        head = column[:ROWS]
        return listed(head) if isinstance(head, np.ndarray) else head.tolist()
    except (ValueError, OverflowError):  # Python has no such values
        return ["..."] * len(rows)


def columns_of(keys):
    """The first values of keys, as functions return them, or of a dict, by names of columns."""
    if isinstance(keys, dict):
        return [(name, _first(column)) for name, column in keys.items()]
    if isinstance(keys, tuple):
        return [(f"key {number}", _first(column)) for number, column in enumerate(keys)]
    if frames := frames_of(keys):
        return [(name, _first(column)) for name, column in zip(*frames.columns(keys))]
    return [("key", _first(keys))]


def page(text, columns):
    """Text, and a small table of columns: pairs of a name and of values."""

    def row(kind, cells):
        texts = (" ".join(str(cell).split()) for cell in cells)
        texts = (text.encode("utf-8", "backslashreplace").decode() for text in texts)
        texts = (text if len(text) <= _WIDE else f"{text[:_WIDE]}…" for text in texts)
        return "<tr>" + "".join(f"<{kind}>{html.escape(text)}</{kind}>" for text in texts) + "</tr>"

    text = text.encode("utf-8", "backslashreplace").decode()
    made = f"<div><p>{html.escape(text)}</p>"
    if columns:
        rows = [row("td", cells) for cells in zip(*(values for _, values in columns))]
        head = row("th", (name for name, _ in columns))
        made += f'<table border="1"><thead>{head}</thead><tbody>{"".join(rows)}</tbody></table>'
    return made + "</div>"
