"""A context with its sentences marked by how much the answer changes without each."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from panel.viewable import Viewable

from steelyard.decisions.wire import SentenceEffect
from steelyard_workbench.kit.basics import html_pane

#: What a mark's colour reaches at most, so that text on it keeps its contrast.
_DEEPEST = 0.35
_FOR, _AGAINST = "46, 125, 50", "211, 47, 47"
#: Changes below this are not marked.
_LEAST = 0.005


def marked_context(context: str, top: str, effects: Sequence[SentenceEffect]) -> Viewable:
    """Return a context in which each sentence shows the loss of the probability of ``top`` without it."""
    parts, at = [], 0
    for effect in sorted(effects, key=lambda effect: effect.start):
        parts.append(escape(context[at : effect.start]))
        parts.append(_marked(effect, top))
        at = effect.end
    parts.append(escape(context[at:]))
    caption = (
        f"What the probability of {top} loses without each sentence. That is sensitivity, not reasoning."
        if effects
        else "The text is one sentence: nothing can be left out of it."
    )
    return html_pane(
        f'<p style="white-space:pre-wrap;margin:0 0 4px">{"".join(parts)}</p>'
        f"<small>{escape(caption)}</small>"
    )


def _marked(effect: SentenceEffect, top: str) -> str:
    text = escape(effect.text)
    if abs(effect.change) < _LEAST:
        return text
    colour = _FOR if effect.change > 0 else _AGAINST
    depth = min(abs(effect.change), 1.0) * _DEEPEST
    instead = f", {escape(effect.top_without)} without it" if effect.top_without != top else ""
    return (
        f'<mark style="color:inherit;background:rgba({colour},{depth:.2f})">{text}</mark>'
        f"<small> ({effect.change:+.2f}{instead})</small>"
    )
