"""An answer as it is read: each decision as a word, how sure it is, and whether that is enough to act."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from types import MappingProxyType
from typing import Any

import panel_material_ui as pmui
from msgspec import UNSET
from panel.viewable import Viewable, Viewer

from steelyard.client.answers import DecideAnswer
from steelyard.decisions.several import LabelSet
from steelyard.decisions.wire import Novelty, SentenceEffect
from steelyard_workbench.kit.basics import html_pane, small_text
from steelyard_workbench.kit.components import figures
from steelyard_workbench.kit.views import verdict
from steelyard_workbench.kit.words import escape_markdown, everyday, is_free
from steelyard_workbench.parts.answer_card import answer_card, unstated_text
from steelyard_workbench.parts.datasets.questions import threshold_of

#: What a mark's colour reaches at most, so that text on it keeps its contrast.
_DEEPEST = 0.35
_FOR, _AGAINST = "46, 125, 50", "211, 47, 47"
#: Changes below this are not marked.
_LEAST = 0.005


def show_answer(
    answer: DecideAnswer,
    *,
    has_charts: bool = True,
    context: Any = None,
    label_sets: Sequence[LabelSet] = (),
    decisions: Sequence[Mapping[str, Any]] = (),
    after: Mapping[str, Viewer] = MappingProxyType({}),
) -> Viewable:
    """Show each decision as a word, with bars of its outcomes and whether it is sure enough to act.

    ``after`` has views to put below some decisions. The decisions of a set of labels are one group.
    Where an explanation was asked for, the context stands below with its sentences marked.
    """
    parts: list[Viewable | Viewer] = []
    if answer.warnings is not UNSET:
        parts += [
            verdict("unsure", "", everyday(escape_markdown(warning.message)))
            for warning in answer.warnings
        ]
    parts += _show_doubts(answer)
    if answer.novelty is not UNSET:
        parts.append(_show_novelty(answer.novelty))
    for labels in label_sets:
        parts += _show_labels(answer, labels, context, has_charts=has_charts)
    grouped = {id_ for labels in label_sets for id_ in labels.labels}
    sent = {decision["id"]: decision for decision in decisions if "id" in decision}
    for name, result in answer.decisions.items():
        if name in grouped:
            continue
        if not has_charts:
            title = f"{name}: {result.top} {result.p_top:.3f}, action {result.action}"
            title += f". {unstated}" if (unstated := unstated_text(result)) else ""
            parts.append(small_text(escape_markdown(title)))
            continue
        decision = sent.get(name, {})
        title = str(decision.get("question") or name)
        parts.append(answer_card(title, result, threshold_of(decision)))
        if name in after:
            parts.append(after[name])
        parts += _explain(answer, name, context)
    parts.append(small_text(", ".join(_facts_of(answer))))
    return pmui.Column(*parts, sizing_mode="stretch_width")


def _facts_of(answer: DecideAnswer) -> list[str]:
    """Return who answered, and what it took."""
    facts = [answer.model, f"{answer.usage.input_tokens:,} input tokens"]
    if steps := sorted({each.route[-1].model for each in answer.decisions.values() if each.route}):
        facts.append(f"decided by {', '.join(steps)}")
    if not is_free(answer.charge.amount_usd):
        facts.append(f"{answer.charge.amount_usd} USD")
    if "total" in answer.timing_ms:
        facts.append(f"{answer.timing_ms['total']:.1f} ms")
    if answer.fallback is not None:
        facts.append(f"instead of {answer.fallback.from_} ({answer.fallback.reason})")
    return facts


def _explain(answer: DecideAnswer, name: str, context: Any) -> list[Viewable]:
    """Show the sentences that a decision depends on, and what a judge wrote; none unless asked for."""
    if answer.explanation is UNSET:
        return []
    shown = [marked_context(context, answer.decisions[name].top, answer.explanation[name])]
    thought = (answer.thoughts or {}).get(name)
    if thought is not None:
        first = ", ".join(f"{outcome} {share:.2f}" for outcome, share in thought.before.items())
        text = f"Its first answer was not sure ({first}). Then it wrote: {thought.text}"
        shown.append(small_text(escape_markdown(text)))
    return shown


def _show_doubts(answer: DecideAnswer) -> list[Viewable]:
    """Show why decisions are less reliable than usual, each reason once."""
    doubts = [result.doubt for result in answer.decisions.values() if result.doubt is not UNSET]
    return [
        verdict("unsure", "Trust it less.", escape_markdown(doubt))
        for doubt in dict.fromkeys(doubts)
    ]


def _show_labels(
    answer: DecideAnswer, labels: LabelSet, context: Any, *, has_charts: bool
) -> list[Viewable]:
    """Show the labels of a set together: those that fit, and how likely each is, with its action."""
    results = {label: answer.decisions[id_] for id_, label in labels.labels.items()}
    fitting = [label for label, result in results.items() if result.top == "yes"]
    title = f"{labels.name}: {', '.join(fitting) or 'no label'}"
    likely = [
        (f"{label}  {result.probabilities['yes']:.3f}, action {result.action}", result)
        for label, result in results.items()
    ]
    if not has_charts:
        lines = "\n".join(f"- {escape_markdown(text)}" for text, _ in likely)
        return [small_text(f"{escape_markdown(title)}\n\n{lines}")]
    likely.sort(key=lambda item: -item[1].probabilities["yes"])
    chart = figures.bars(
        [text for text, _ in likely],
        [result.probabilities["yes"] for _, result in likely],
        title=title,
        x="probability of yes",
    )
    parts: list[Viewable] = [figures.show(chart)]
    if answer.explanation is not UNSET:
        for id_, label in labels.labels.items():
            parts.append(small_text(escape_markdown(f"{label}: {answer.decisions[id_].top}")))
            parts += _explain(answer, id_, context)
    return parts


def _show_novelty(novelty: Novelty) -> Viewable:
    """Show how unlike the training rows of its family a context is."""
    share = f"{novelty.share:.1%} of the training rows lie further out."
    if novelty.unlike:
        return verdict("bad", "Unlike any training row: every decision abstains.", share)
    return verdict("good", "Like the training rows.", share)


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
