"""Production and another version side by side, with the differences marked word by word."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from itertools import zip_longest
from typing import Any

from panel.viewable import Viewable

from steelyard.decision_log.wire import DecisionSummary
from steelyard.named.comparison_wire import ComparisonResult
from steelyard.named.wire import NamedVersion
from steelyard_workbench.kit.basics import html_pane
from steelyard_workbench.kit.look import CARD_CSS, pill, with_tokens
from steelyard_workbench.kit.theme import HEADING, SMALL
from steelyard_workbench.kit.words import ago, changed_sides, counted, percent_text, share_text
from steelyard_workbench.pages.decisions.judging import best_known
from steelyard_workbench.pages.decisions.rules_form import write_fields, write_rules
from steelyard_workbench.pages.playground.read_as import read_as_text
from steelyard_workbench.parts.datasets.questions import questions_of
from steelyard_workbench.parts.named.looking import Looked, author

_CSS = CARD_CSS + with_tokens(f"""
.row {{ gap: 4px 12px; }}
.row .note {{ margin-left: auto; }}
summary {{ font-size: {SMALL}; color: var(--muted); }}
h2 {{ font-size: inherit; margin: 0; }}
.asks {{ font-size: {HEADING}; margin: 12px 0 4px; }}
ul {{ margin: 4px 0; padding-left: 20px; }}
.sides {{ display: grid; gap: 20px; grid-template-columns: repeat(auto-fit, minmax(min(380px, 100%), 1fr)); }}
.figures {{ display: flex; flex-wrap: wrap; gap: 4px 24px; margin-top: 16px; }}
""")


def show_beside(looked: Looked) -> Viewable:
    """Show production, and the other version beside it where there is one."""
    here, other = looked.version, looked.beside
    result = None if looked.comparison is None else looked.comparison.result
    moved = next((move for move in looked.moves if move.to_version == here.version), None)
    since, by = (
        (here.created_at, here.made_by) if moved is None else (moved.created_at, moved.moved_by)
    )
    left, right = _marked(here, here if other is None else other)
    first = _card(
        "Production",
        f"version {here.version}",
        f"since {ago(since)}, by {author(by)}",
        left + _figures(looked.of_version, result, 0),
    )
    if other is None:
        return _drawn(first)
    places = [each.alias for each in looked.decision.aliases if each.version == other.version]
    about = f"made {ago(other.created_at)}, by {author(other.made_by)}"
    second = _card(
        ", ".join(places).capitalize() or "Nowhere in use",
        f"version {other.version}",
        f"{about}: {other.note}" if other.note else about,
        right + _figures(looked.of_beside, result, 1),
    )
    return _drawn(first, second)


def _marked(old: NamedVersion, new: NamedVersion) -> tuple[str, str]:
    """Return HTML of both versions' content: wording, outcomes, policies and model."""
    sides = ["", ""]

    def add(tag: str, kind: str, before: str, after: str) -> None:
        for place, text in enumerate(changed_sides(before, after)):
            sides[place] += f'<{tag} class="{kind}" dir="auto">{text}</{tag}>' if text else ""

    by_id = [{each["id"]: each for each in version.decisions} for version in (old, new)]
    for id_ in dict.fromkeys([*by_id[0], *by_id[1]]):
        pair = [decisions.get(id_, {}) for decisions in by_id]
        questions = [next(iter(questions_of([each] if each else [])), None) for each in pair]
        texts = ["" if each is None else each.text for each in questions]
        add("div", "asks", *texts)
        add("div", "note", *map(read_as_text, pair))
        guidelines = [each.get("guideline") or "" for each in pair]
        if guidelines[0] != guidelines[1]:
            add("div", "note", *(text and f"Guideline: {text}" for text in guidelines))
        outcomes: list[dict[str, str]] = [
            {}
            if each is None
            else {
                name: f"{name}: {text}" if text else name
                for name, text in zip(each.outcomes, each.descriptions, strict=True)
            }
            for each in questions
        ]
        names = dict.fromkeys([*outcomes[0], *outcomes[1]])
        is_same = outcomes[0] == outcomes[1]
        # Outcomes that both have alike take the room of a line, until somebody opens them.
        opening = (
            f"<details><summary>{escape(', '.join(names))}</summary><ul>" if is_same else "<ul>"
        )
        sides = [side + opening for side in sides]
        for name in names:
            add("li", "", *(each.get(name, "") for each in outcomes))
        closing = "</ul></details>" if is_same else "</ul>"
        sides = [side + closing for side in sides]
        add("div", "note", *(_policy_text(each) if each else "" for each in pair))
    add("div", "note", _fields_text(old), _fields_text(new))
    lines = [write_rules(version.content).splitlines() for version in (old, new)]
    for before, after in zip_longest(*lines, fillvalue=""):
        add("div", "note", before, after)
    add("div", "note", _model_text(old), _model_text(new))
    return sides[0], sides[1]


def _policy_text(decision: Mapping[str, Any]) -> str:
    """Return the policy of a decision in words, as ``acts from 0.8, else a person``."""
    abstain, policy = dict(decision.get("abstain") or {}), dict(decision.get("policy") or {})
    threshold = abstain.pop("min_probability", policy.pop("abstain_below", None))
    texts = ["always acts" if threshold is None else f"acts from {threshold}, else a person"]
    rest: dict[str, Any] = {"abstain": abstain, "policy": policy}
    rest |= {name: decision.get(name) for name in ("costs", "weights", "opposite")}
    return " · ".join(
        [*texts, *(f"{name} {_pairs(value)}" for name, value in rest.items() if value)]
    )


def _fields_text(version: NamedVersion) -> str:
    """Return declared fields, as ``with amount: decimal, country: text (optional)``."""
    fields = write_fields(version.fields or {}).replace(", optional", " (optional)")
    return f"with {', '.join(fields.splitlines())}" if fields else ""


def _model_text(version: NamedVersion) -> str:
    texts = [f"answered by {version.model or 'the default model'}"]
    if version.fallback:
        when = "fails or is unsure" if version.escalate else "fails"
        texts.append(f"where it {when} by {_pairs(version.fallback)}")
    if version.temperature is not None:
        texts.append(f"temperature {version.temperature}")
    return ", ".join(texts)


def _pairs(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name.replace('_', ' ')} {_pairs(part)}" for name, part in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _card(place: str, title: str, about: str, body: str) -> str:
    return (
        f'<section class="card" aria-label="{escape(place)}"><div class="row">'
        f"{pill(place, 'good' if place == 'Production' else 'brass')}<h2>{escape(title)}</h2>"
        f'<span class="note">{escape(about)}</span></div>{body}</section>'
    )


def _drawn(*sides: str) -> Viewable:
    """Return cards of one height beside each other."""
    return html_pane(f'<div class="sides">{"".join(sides)}</div>', _CSS, margin=(6, 10))


def _figures(week: DecisionSummary | None, result: ComparisonResult | None, place: int) -> str:
    """Return a version's figures on the rows of the comparison, or on its own answers of the last week."""
    figures: list[tuple[str, str, str]] = []
    if result is not None:
        side = result.rows or result.stored
        left = None if side is None or not side.decisions else side.decisions[0].abstained
        for word, change in (("right", best_known(result)), ("to a person", left)):
            if change is not None:
                value = (change.before, change.after)[place]
                figures.append(
                    (percent_text(value), word, f"of the {change.n:,} that both answered")
                )
    elif week is not None:
        for word, measure in (("right", week.accuracy), ("to a person", week.abstain_rate)):
            if measure is not None:
                share, _, note = share_text(measure).partition(" (")
                figures.append((share, word, note.rstrip(")")))
    if week is not None and week.latency_p50_ms is not None:
        note = f"median of {counted(week.answers, 'answer')} in the last week"
        figures.append((f"{week.latency_p50_ms.value:.0f} ms", "", note))
    return '<div class="figures">{}</div>'.format(
        "".join(
            f'<div><b class="figure">{value}</b>{word}<div class="note">{note}</div></div>'
            for value, word, note in figures
        )
    )
