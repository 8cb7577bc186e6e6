"""Draw the pictures of the documents from the texts beside them.

``python docs/tools/pictures.py`` draws every ``docs/pictures/*.txt`` as an SVG of the same name. A
text has a line for each part, places counted in columns and rows from 0 and halves allowed::

    title What the picture shows
    area 0,1 4x2 A frame around so many columns and rows
    box name 0,0 Title | a second line
    arrow name other Words beside it

An arrow leaves and enters at the sides that face each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path

PICTURES = Path(__file__).resolve().parents[1] / "pictures"
#: Of a box, and between two: width and height in pixels.
_WIDTH, _HEIGHT, _GAP_X, _GAP_Y = 168, 58, 46, 44
_MARGIN = 24
_INK, _FRAME, _LINE, _FILL = "#1f2d2b", "#5f7470", "#00695c", "#e6f2f0"


@dataclass(frozen=True)
class Box:
    """A box: where it is in pixels, and what stands in it."""

    x: float
    y: float
    title: str
    text: str

    @property
    def middle(self) -> tuple[float, float]:
        """Return the point in its middle."""
        return self.x + _WIDTH / 2, self.y + _HEIGHT / 2


def draw(source: str) -> str:
    """Return the SVG of a text."""
    title, boxes, areas, arrows = "", {}, [], []
    for line in source.splitlines():
        kind, _, rest = line.partition(" ")
        if kind == "title":
            title = rest
        elif kind == "box":
            name, place, words = rest.split(" ", 2)
            head, _, text = words.partition(" | ")
            boxes[name] = Box(*_place(place), head, text)
        elif kind == "area":
            place, size, words = rest.split(" ", 2)
            areas.append((_place(place), tuple(map(float, size.split("x"))), words))
        elif kind == "arrow":
            start, end, *words = rest.split(" ", 2)
            arrows.append((boxes[start], boxes[end], "".join(words)))
        elif line.strip():
            raise ValueError(
                f"{line!r} is no part of a picture; begin with title, area, box or arrow."
            )
    width = max(box.x for box in boxes.values()) + _WIDTH + _MARGIN
    height = max(box.y for box in boxes.values()) + _HEIGHT + _MARGIN
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
            f'width="{width:g}" height="{height:g}" role="img" font-family="sans-serif">'
        ),
        f"<title>{escape(title)}</title>",
        (
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" '
            f'markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" fill="{_LINE}"/></marker></defs>'
        ),
        f'<rect width="{width:g}" height="{height:g}" rx="8" fill="#ffffff"/>',
        *(_area(*area) for area in areas),
        *(_arrow(*arrow) for arrow in arrows),
        *(_box(box) for box in boxes.values()),
        *(_words(*arrow) for arrow in arrows if arrow[2]),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _place(text: str) -> tuple[float, float]:
    column, row = map(float, text.split(","))
    return _MARGIN + column * (_WIDTH + _GAP_X), _MARGIN + row * (_HEIGHT + _GAP_Y)


def _area(place: tuple[float, float], size: tuple[float, ...], words: str) -> str:
    x, y = place[0] - 14, place[1] - 30
    width = size[0] * (_WIDTH + _GAP_X) - _GAP_X + 28
    height = size[1] * (_HEIGHT + _GAP_Y) - _GAP_Y + 44
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="8" fill="none" '
        f'stroke="{_FRAME}" stroke-dasharray="5 4"/>\n'
        f'<text x="{x + width - 10:g}" y="{y + 18:g}" text-anchor="end" font-size="12" '
        f'fill="{_FRAME}">{escape(words)}</text>'
    )


def _box(box: Box) -> str:
    x, y = box.middle
    title_y = y - 4 if box.text else y + 5
    text = f'\n<text x="{x:g}" y="{y + 15:g}" font-size="11">{escape(box.text)}</text>'
    return (
        f'<g text-anchor="middle" fill="{_INK}">\n'
        f'<rect x="{box.x:g}" y="{box.y:g}" width="{_WIDTH}" height="{_HEIGHT}" rx="6" '
        f'fill="{_FILL}" stroke="{_LINE}"/>\n'
        f'<text x="{x:g}" y="{title_y:g}" font-size="14" font-weight="600">{escape(box.title)}</text>'
        f"{text if box.text else ''}\n</g>"
    )


def _ends(start: Box, end: Box) -> tuple[float, float, float, float]:
    (x1, y1), (x2, y2) = start.middle, end.middle
    if abs(y2 - y1) < _HEIGHT:
        step = _WIDTH / 2 if x2 > x1 else -_WIDTH / 2
        return x1 + step, y1, x2 - step, y2
    step = _HEIGHT / 2 if y2 > y1 else -_HEIGHT / 2
    return x1, y1 + step, x2, y2 - step


def _arrow(start: Box, end: Box, _: str) -> str:
    x1, y1, x2, y2 = _ends(start, end)
    return (
        f'<path d="M{x1:g} {y1:g}L{x2:g} {y2:g}" fill="none" stroke="{_LINE}" '
        'stroke-width="1.5" marker-end="url(#tip)"/>'
    )


def _words(start: Box, end: Box, words: str) -> str:
    x1, y1, x2, y2 = _ends(start, end)
    x, y = (x1 + x2) / 2, (y1 + y2) / 2
    anchor = f'x="{x:g}" y="{y - 6:g}" text-anchor="middle"'
    if abs(x1 - x2) < 1:
        anchor = f'x="{x + 8:g}" y="{y + 4:g}"'
    return (
        f'<text {anchor} font-size="11" fill="{_INK}" stroke="#ffffff" stroke-width="4" '
        f'paint-order="stroke">{escape(words)}</text>'
    )


def sources() -> list[Path]:
    """Return the texts that pictures are drawn from."""
    return sorted(PICTURES.glob("*.txt"))


if __name__ == "__main__":
    for path in sources():
        svg = draw(path.read_text(encoding="utf-8"))
        path.with_suffix(".svg").write_text(svg, encoding="utf-8")
