"""Icons as inline SVG: nothing to fetch, in a page as in a notebook. Drawn for this project."""

from __future__ import annotations

_SHAPES = {
    "home": '<path d="M4 11l8-7 8 7v9h-5v-6H9v6H4z"/>',
    "datasets": '<path d="M4 6c0-4 16-4 16 0v12c0 4-16 4-16 0zM4 6c0 4 16 4 16 0M4 12c0 4 16 4 16 0"/>',
    "review": '<path d="M4 5h16M4 10h10M4 15h7M13 17l3 3 5-7"/>',
    "versions": '<path d="M6 3v18M6 8h8a4 4 0 0 1 4 4v2M15 14l3 3 3-3"/>',
    "evaluations": '<path d="M4 20V4M4 20h16M8 16v-4M12 16V8M16 16v-6"/>',
    "compare": '<path d="M8 4v16M16 4v16M3 8h5M16 8h5M3 14h5M16 14h5"/>',
    "families": '<circle cx="5" cy="12" r="2"/><circle cx="12" cy="12" r="2"/>'
    '<circle cx="19" cy="12" r="2"/><path d="M7 12h3M14 12h3"/>',
    "live": '<path d="M3 12h4l3-8 4 16 3-8h4"/>',
    "jobs": '<circle cx="12" cy="12" r="8"/><path d="M12 7v5l4 2"/>',
    "playground": '<path d="M5 4l14 8-14 8z"/>',
    "settings": '<path d="M4 7h10M18 7h2M4 17h2M10 17h10"/><circle cx="16" cy="7" r="2"/>'
    '<circle cx="8" cy="17" r="2"/>',
    "help": '<circle cx="12" cy="12" r="9"/><path d="M9.5 9.5c0-4 5.500-3.500 5 0-.3 2-2.500 2-2.500 4.500M12 17v.5"/>',
    "good": '<path d="M4 13l5 5L20 6"/>',
    "bad": '<path d="M6 6l12 12M18 6L6 18"/>',
    "unsure": '<path d="M4 9c4-4 6 4 10 0 2-2 4-1 6 0M4 16c4-4 6 4 10 0 2-2 4-1 6 0"/>',
    "running": '<path d="M20 12a8 8 0 1 1-3-6.200M20 3v5h-5"/>',
    "off": '<path d="M12 3v8M7 6a8 8 0 1 0 10 0"/>',
    "copy": '<path d="M8 8h12v12H8zM4 16V4h12"/>',
    "download": '<path d="M12 4v11M7 10l5 5 5-5M4 20h16"/>',
    "upload": '<path d="M12 15V4M7 9l5-5 5 5M4 20h16"/>',
    "undo": '<path d="M8 5L4 9l4 4M4 9h10a6 6 0 0 1 0 12h-3"/>',
    "redo": '<path d="M16 5l4 4-4 4M20 9H10a6 6 0 0 0 0 12h3"/>',
    "search": '<circle cx="10" cy="10" r="6"/><path d="M15 15l6 6"/>',
    "close": '<path d="M6 6l12 12M18 6L6 18"/>',
    "next": '<path d="M9 5l7 7-7 7"/>',
    "previous": '<path d="M15 5l-7 7 7 7"/>',
}


def icon(name: str) -> str:
    """Give an icon as SVG that takes the colour of the text around it.

    Raises
    ------
    KeyError
        When there is none of that name.
    """
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" width="24" height="24" viewBox="0 0 24 24" '
        'fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" '
        f'stroke-linejoin="round" aria-hidden="true">{_SHAPES[name]}</svg>'
    )
