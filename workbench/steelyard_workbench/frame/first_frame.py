"""What a browser shows of a page before its scripts have run: the bar, the menu and the title."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import panel_material_ui as pmui
from bokeh.document import Document

from steelyard_workbench.frame.mark import MARK
from steelyard_workbench.navigation import Section, entry_of

#: It also has the components loaded early, and as the browser's own modules.
_TEMPLATE = Path(__file__).resolve().parents[1] / "templates" / "page.html"


def first_frame(document: Document, slug: str, sections: Sequence[Section]) -> Path:
    """Return the template of the page around the app, whose values the document gets.

    Parameters
    ----------
    slug : str
        The page that is open.
    sections : sequence of Section
        The menu; empty while it is not known whose it is.
    """
    entry = entry_of(slug)
    document.template_variables.update(
        {
            "mark": MARK,
            "menu": [section.title for section in sections],
            "page_title": "" if entry is None or not sections else entry.title,
            # All components of the frame come from one file, which is named by its hash.
            "components": pmui.Button._render_esm(server=True),
        }
    )
    return _TEMPLATE
