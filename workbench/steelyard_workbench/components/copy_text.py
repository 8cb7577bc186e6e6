"""A text to copy: shown as it is, with a button that puts it on the clipboard."""

from __future__ import annotations

from html import escape

import panel as pn
import panel_material_ui as pmui
from panel.viewable import Viewable, Viewer

_STYLE = (
    "white-space:pre-wrap;overflow-wrap:anywhere;margin:0;padding:0.6em;font-size:0.857rem;"
    "border:1px solid rgba(128,128,128,0.5);border-radius:4px;max-height:18em;overflow:auto"
)


class CopyText(Viewer):
    """A text to copy."""

    def __init__(self, text: str, label: str) -> None:
        super().__init__()
        self.text = text
        button = pmui.Button(label=f"Copy {label}", variant="outlined", size="small")
        button.jscallback(clicks="navigator.clipboard.writeText(text)", args={"text": text})
        self._box = pmui.Column(
            pn.pane.HTML(
                f'<pre tabindex="0" aria-label="{escape(label)}" style="{_STYLE}">'
                f"{escape(text)}</pre>",
                sizing_mode="stretch_width",
            ),
            button,
            name=label,
            sizing_mode="stretch_width",
        )

    def __panel__(self) -> Viewable:
        return self._box
