"""One decision's answer as it is read: a word, how sure it is, and whether that is enough to act."""

from __future__ import annotations

from html import escape

from msgspec import UNSET, UnsetType
from panel.viewable import Viewable

from steelyard.decisions.wire import ABSTAIN, DecisionResult
from steelyard_workbench.kit.basics import html_pane
from steelyard_workbench.kit.look import CARD_CSS, bar, with_tokens
from steelyard_workbench.kit.theme import SMALL, outcome_colours

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
p {{ margin: 12px 0 0; }}
""")


_Threshold = float | None | UnsetType


def answer_card(title: str, result: DecisionResult, threshold: _Threshold = UNSET) -> Viewable:
    """Return one decision as a card: its likeliest outcome in large type, and the bars of all.

    ``threshold``: the probability that it acts from; ``None`` where it acts on any, unset where that is
    not known.
    """
    likeliest = sorted(result.probabilities.items(), key=lambda item: -item[1])[:_MOST_OUTCOMES]
    colours = outcome_colours(result.probabilities)
    mark = threshold if isinstance(threshold, float) else None
    bars = "".join(
        f'<li><span dir="auto">{escape(outcome)}</span>'
        f"{bar(probability, colours[outcome], mark if at == 0 else None)}"
        f"<span>{probability:.3f}</span></li>"
        for at, (outcome, probability) in enumerate(likeliest)
    )
    return html_pane(
        f'<section class="card"><h2 dir="auto">{escape(title)}</h2>'
        f'<div class="verdict"><bdi>{escape(result.top)}</bdi> <small>{result.p_top * 100:.0f} of 100 '
        f"sure</small></div><ul>{bars}</ul>"
        f"<p><strong>Sure enough to act?</strong> {escape(_acts(result, threshold))}</p>"
        + (f"<p>{escape(unstated)}</p>" if (unstated := unstated_text(result)) else "")
        + "</section>",
        _STYLE,
    )


def unstated_text(result: DecisionResult) -> str:
    """Return how likely it is that the text does not say; empty for models that cannot tell."""
    if result.unstated is UNSET:
        return ""
    return f"The text may not say: {result.unstated * 100:.0f} of 100."


def _acts(result: DecisionResult, threshold: _Threshold) -> str:
    """Return whether an answer is acted on, and why."""
    if result.action == ABSTAIN:
        needed = f" It would act from {threshold:g} on." if isinstance(threshold, float) else ""
        return f"No: it is left to a person.{needed}"
    action = "" if result.action == result.top else f", with the action {result.action}"
    if threshold is UNSET:
        return f"Yes{action}."
    why = "no threshold is set" if threshold is None else f"it acts from {threshold:g} on"
    return f"Yes{action}: {why}."
