"""Markdown with words that stand out, lists and code, and with nothing of HTML, links or images.

Panel's parser lets HTML through, and texts of pages have names, questions and refusals in them that
come from data, from the address or from a server.
"""

from __future__ import annotations

from typing import Any

import panel as pn
import panel_material_ui as pmui
from panel_material_ui.layout import base as of_alerts

_LEFT_OUT = ("autolink", "html_block", "html_inline", "image", "link", "linkify")


def leave_out(parser: Any) -> None:
    """Make a parser show HTML, links and images as they are written."""
    parser.disable(_LEFT_OUT)


class _AlertMarkdown:
    """Stands where alerts look for Panel's ``Markdown``: they give their parser no options."""

    @staticmethod
    def _get_parser(renderer: str, plugins: tuple[Any, ...]) -> Any:
        return pn.pane.Markdown._get_parser(renderer, (*plugins, leave_out))


def draw_plain_markdown() -> None:
    """Draw all Markdown of this process so."""
    for pane in (pn.pane.Markdown, pmui.Typography):
        pane.param.plugins.default = [leave_out]
    of_alerts.Markdown = _AlertMarkdown
