"""One decision's answer as it is read: a word, how sure it is, and whether that is enough to act."""

from __future__ import annotations

from html import escape

from msgspec import UNSET, UnsetType
from panel.viewable import Viewable

from steelyard.decisions.wire import ABSTAIN, DecisionResult
from steelyard_workbench.kit.basics import html_pane
from steelyard_workbench.kit.look import CARD_CSS, bar, pill, weighed, with_tokens
from steelyard_workbench.kit.theme import SMALL, Status, outcome_colours

#: Outcomes of a decision that are listed, the likeliest first.
_MOST_OUTCOMES = 20
_STYLE = CARD_CSS + with_tokens(f"""
h2 {{ font-size: {SMALL}; font-weight: 400; color: var(--muted); margin: 0; }}
.verdict {{ margin: 4px 0 16px; }}
ul {{
  list-style: none; margin: 0; padding: 0; display: grid; gap: 6px 12px; align-items: center;
  grid-template-columns: minmax(0, auto) minmax(60px, 1fr) auto;
}}
li {{ display: contents; }}
li span {{ overflow-wrap: anywhere; }}
li span:last-child {{ font-variant-numeric: tabular-nums; }}
.pills {{ margin-top: 12px; }}
""")
_Threshold = float | None | UnsetType


def answer_card(title: str, result: DecisionResult, threshold: _Threshold = UNSET) -> Viewable:
    """Return one decision as a card: its likeliest outcome in large type, and where each stands.

    ``threshold``: the probability that it acts from; ``None`` where it acts on any, unset where that is
    not known.
    """
    status, acts, why = _acts(result, threshold)
    note = " ".join(text for text in (why, unstated_text(result)) if text)
    return html_pane(
        f'<section class="card"><h2 dir="auto">{escape(title)}</h2>'
        f'<div class="verdict"><bdi>{escape(result.top)}</bdi> <small>{result.p_top * 100:.0f} of 100 '
        f"sure</small></div>{_drawn(result, threshold if isinstance(threshold, float) else None)}"
        f'<div class="pills">{pill(acts, status)}<span class="note">{escape(note)}</span></div></section>',
        _STYLE,
    )


def _drawn(result: DecisionResult, threshold: float | None) -> str:
    """Return the probabilities as HTML: a beam from no to yes, else a bar for each outcome."""
    colours = outcome_colours(result.probabilities)
    if result.kind == "binary":
        return weighed(result.probabilities["yes"], colours[result.top], threshold)
    likeliest = sorted(result.probabilities.items(), key=lambda item: -item[1])[:_MOST_OUTCOMES]
    bars = "".join(
        f'<li><span dir="auto">{escape(outcome)}</span>'
        f"{bar(probability, colours[outcome], threshold if at == 0 else None)}"
        f"<span>{probability:.3f}</span></li>"
        for at, (outcome, probability) in enumerate(likeliest)
    )
    return f"<ul>{bars}</ul>"


def unstated_text(result: DecisionResult) -> str:
    """Return how likely it is that the text does not say; empty for models that cannot tell."""
    if result.unstated is UNSET:
        return ""
    return f"The text may not say: {result.unstated * 100:.0f} of 100."


def _acts(result: DecisionResult, threshold: _Threshold) -> tuple[Status | str, str, str]:
    """Return whether an answer is acted on, as a status and in words, and why."""
    if result.action == ABSTAIN:
        needed = f" It would act from {threshold:g} on." if isinstance(threshold, float) else ""
        return "unsure", "Not sure enough to act", f"It is left to a person.{needed}"
    action = "" if result.action == result.top else f"The action is {result.action}. "
    if threshold is None:
        return "", "Acts on every answer", f"{action}No threshold is set."
    why = f"It acts from {threshold:g} on." if isinstance(threshold, float) else ""
    return "good", "Sure enough to act", f"{action}{why}"
