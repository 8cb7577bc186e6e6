"""What the scorer reads: the texts of a request, in one form for training and for serving.

Here: the rendered form of a context, of questions and of outcomes. Not here: tokens and positions
(``steelyard.scoring.packing``), validation (``steelyard.decisions.validation``).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

#: What an empty context is read as.
NO_CONTEXT = "no context"


@dataclass(frozen=True, slots=True)
class RenderedDecision:
    """One decision as text.

    Parameters
    ----------
    kind : str
        ``single``, ``binary`` or ``ordinal``.
    question : str
        The question, never blank.
    outcomes : tuple of str
        One text per outcome, in outcome order; 2 to 255 of them.
    """

    kind: str
    question: str
    outcomes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RenderedRequest:
    """One context and the decisions asked on it, as text.

    Parameters
    ----------
    context : str
        The context; never empty (an empty one is rendered as ``NO_CONTEXT``).
    decisions : tuple of RenderedDecision
        1 to 64 of them.
    """

    context: str
    decisions: tuple[RenderedDecision, ...]


def render_value(value: Any) -> str:
    """Give a string as it is and any other JSON value as its JSON text."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def render_context(context: Any) -> str:
    """Give the text of a context; a blank one reads ``NO_CONTEXT``."""
    text = render_value(context)
    return text if text.strip() else NO_CONTEXT


def render_outcome(name: str, description: Any = None) -> str:
    """Give the text of an outcome: its name, and its description when it has one."""
    if description is None:
        return name
    text = render_value(description)
    return f"{name}: {text}" if text.strip() else name
