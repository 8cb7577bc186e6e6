"""Icons of how something stands, as inline SVG: nothing to fetch. Drawn for this project."""

from __future__ import annotations

_SHAPES = {
    "good": '<path d="M4 13l5 5L20 6"/>',
    "bad": '<path d="M6 6l12 12M18 6L6 18"/>',
    "unsure": '<path d="M4 9c4-4 6 4 10 0 2-2 4-1 6 0M4 16c4-4 6 4 10 0 2-2 4-1 6 0"/>',
    "running": '<path d="M20 12a8 8 0 1 1-3-6.200M20 3v5h-5"/>',
    "off": '<path d="M12 3v8M7 6a8 8 0 1 0 10 0"/>',
}


def icon(name: str) -> str:
    """Return an icon as SVG in the colour of the text around it; raise ``KeyError`` for an unknown name."""
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" width="24" height="24" viewBox="0 0 24 24" '
        'fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" '
        f'stroke-linejoin="round" aria-hidden="true">{_SHAPES[name]}</svg>'
    )
