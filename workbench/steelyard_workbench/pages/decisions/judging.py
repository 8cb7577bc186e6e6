"""Whether the other version may replace production: the verdict in a sentence, and its evidence."""

from __future__ import annotations

import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.decisions.wire import ABSTAIN
from steelyard.evaluations.wire import Change
from steelyard.named.comparison_wire import ActionMove, ComparisonResult, NamedComparison
from steelyard.wire.jobs import UNFINISHED
from steelyard_workbench.kit.basics import stack
from steelyard_workbench.kit.theme import Status
from steelyard_workbench.kit.views import table
from steelyard_workbench.kit.words import (
    change_text,
    escape_markdown,
    is_free,
    measure_text,
    percent_text,
)
from steelyard_workbench.parts.families.verdicts import plain_reasons

#: Changes of actions that are listed, of a decision on rows or on stored decisions.
_MOST_MOVES = 5
_STATUS: dict[str, Status] = {"passed": "good", "refused": "bad", "inconclusive": "unsure"}


def judge(number: int, comparison: NamedComparison | None) -> tuple[Status, str, list[str]]:
    """Return a version's standing against production, a sentence, and its evidence."""
    if comparison is None:
        text = "Compare it with production before it answers there."
        return "running", f"Version {number} was not compared yet.", [text]
    if comparison.status in UNFINISHED:
        return "running", f"Version {number} is being compared with production.", []
    result = comparison.result
    if result is None:
        end = "was stopped" if comparison.status == "cancelled" else "failed"
        why = comparison.error or "Compare them again."
        return "bad", f"The comparison of version {number} {end}.", [why]
    gain = best_known(result)
    return _STATUS[result.verdict], _sentence(number, result, gain), _basis(result, gain)


def best_known(result: ComparisonResult) -> Change | None:
    """Return the change of right actions where it is largest; ``None`` without known outcomes."""
    side = result.rows if result.rows is not None and result.rows.labelled else result.stored
    changes = [] if side is None else [each.right for each in side.decisions if each.right]
    return max(changes, key=lambda change: abs(change.change), default=None)


def _sentence(number: int, result: ComparisonResult, gain: Change | None) -> str:
    """Return the verdict, as ``Version 7 is better: +5 points right, between +1 and +9.``."""
    word = {
        "passed": "is as good as production",
        "refused": "is refused",
        "inconclusive": "may be better or worse",
    }[result.verdict]
    if gain is None:
        return f"Version {number} {word}: no right answers are known."
    low, high = gain.low, gain.high
    if result.verdict == "passed" and low is not None and low > 0:
        word = "is better"
    if low == high == 0:
        return f"Version {number} {word}: it changed no answer that is known to be right or wrong."
    if low is None or high is None:
        return f"Version {number} {word}: {_points(gain.change)} points right."
    between = f"between {_points(low)} and {_points(high)}"
    return f"Version {number} {word}: {_points(gain.change)} points right, {between}."


def _basis(result: ComparisonResult, gain: Change | None) -> list[str]:
    sides = [side for side in (result.rows, result.stored) if side is not None]
    decisions = [each for side in sides for each in side.decisions]
    texts = []
    if gain is not None:
        # What is left to a person is neither right nor wrong.
        shares = [f"{_share(gain)} right"]
        shares += [
            f"{_share(each.wrong)} wrong" for each in decisions if each.right is gain and each.wrong
        ]
        texts.append(f"Of {gain.n:,} known answers {' and '.join(shares)}.")
    rules = next((side.rules for side in sides if side.rules is not None), None)
    if rules is not None and rules.changed is not None:
        share = percent_text(rules.changed.value)
        texts.append(f"Its rules act otherwise on {share} of {rules.n:,} texts.")
    price = result.price
    if price is not None and not (is_free(price.usd_before) and is_free(price.usd_after)):
        texts.append(
            f"1,000 requests cost {price.usd_after} USD instead of {price.usd_before} USD."
        )
    if result.left_out:
        texts.append(f"{result.left_out:,} texts are longer than one of the models reads.")
    return [*texts, *plain_reasons(result.reasons, result.sentences)[:1]]


def comparison_figures(result: ComparisonResult, stored: str = "stored decisions") -> Viewable:
    """Show the reasons in exact words, the measures of each decision, and changed actions.

    ``stored`` names the texts that were no rows of a dataset.
    """
    texts = [*result.sentences, *result.warnings]
    reasons = [pmui.Typography(escape_markdown(text)) for text in texts]
    sides = (("rows for the check", result.rows), (stored, result.stored))
    decisions = [
        (name, each) for name, side in sides if side is not None for each in side.decisions
    ]
    rows = [
        (
            name,
            each.decision,
            measure_text(each.changed),
            change_text(each.abstained),
            change_text(each.right),
            change_text(each.wrong),
        )
        for name, each in decisions
    ]
    moves = [
        (name, each.decision, _move_text(move), f"{move.n:,}")
        for name, each in decisions
        for move in each.moves[:_MOST_MOVES]
    ]
    ruled = [(name, side.rules) for name, side in sides if side is not None and side.rules]
    rows += [
        (name, "(rules)", measure_text(rules.changed), "", change_text(rules.right), "")
        for name, rules in ruled
    ]
    moves += [
        (name, "(rules)", _move_text(move), f"{move.n:,}")
        for name, rules in ruled
        for move in rules.moves[:_MOST_MOVES]
    ]
    measures = ("on", "decision", "other action", "left to a person", "right", "wrong")
    tables = [table(measures, rows, label="What changes")]
    if moves:
        counts = ("on", "decision", "action", "how often")
        tables.append(table(counts, moves, label="Actions that changed", numbers=(3,)))
    for switch in result.switches:
        bands = [
            (f"{band.low:g} to {band.high:g}", f"{band.agree.n:,}", measure_text(band.agree))
            for band in switch.bands
        ]
        tables += [
            pmui.Typography(escape_markdown(switch.advice)),
            table(
                ("how sure the other version is", "answers", "same answer"),
                bands,
                label=f"How far {switch.decision} agrees",
                numbers=(1,),
            ),
        ]
    return stack(*reasons, *tables)


def _move_text(move: ActionMove) -> str:
    actions = (move.before, move.after)
    return " → ".join("a person" if each == ABSTAIN else each for each in actions)


def closed_part(title: str, content: Viewable) -> Viewable:
    """Return a part of the page that opens under its title."""
    return pmui.Accordion(
        (title, content), sizing_mode="stretch_width", margin=(6, 10), title_variant="body1"
    )


def _share(change: Change) -> str:
    return f"{percent_text(change.before)} → {percent_text(change.after)}"


def _points(share: float) -> str:
    """Return a change of a share in points, with a place behind the comma where it is small."""
    points = share * 100
    return f"{points:+.0f}" if abs(points) >= 1 or points == 0 else f"{points:+.1f}"
