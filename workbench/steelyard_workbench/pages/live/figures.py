"""The figures of a window: the leading ones, with n and intervals, and the rows behind them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from html import escape

from panel.viewable import Viewable

from steelyard.alarms.wire import Alarm
from steelyard.decision_log.wire import DecisionGroup, DecisionSummary
from steelyard.wire.measures import Measure
from steelyard_workbench.kit.basics import action_button, html_pane, small_text, stack
from steelyard_workbench.kit.components import figures
from steelyard_workbench.kit.components.mark_table import mark_table
from steelyard_workbench.kit.look import CARD_CSS, with_tokens
from steelyard_workbench.kit.views import empty, heading, with_details
from steelyard_workbench.kit.words import measure_text
from steelyard_workbench.kit.words import share_text as share_in_words
from steelyard_workbench.pages.live.charts import rate_chart, unit_of
from steelyard_workbench.parts.evaluations.charts import (
    FEW,
    bin_counts_chart,
    bin_name,
    reliability_chart,
)
from steelyard_workbench.parts.live.view import AnswerFilter, View

Open = Callable[[AnswerFilter], None]
_BANDS = "Yellow bands are the times of the decisions behind the alarms above."
#: Bars of the small chart of answers, at most.
_SPARKS = 14
_STRIP_CSS = CARD_CSS + with_tokens("""
.strip { display: grid; grid-template-columns: repeat(auto-fit, minmax(170px, 1fr)); gap: 16px; }
.strip .card { padding: 14px 20px; }
.spark { display: inline-flex; align-items: flex-end; gap: 2px; height: 24px; }
.spark i { width: 6px; border-radius: 2px 2px 0 0; background: var(--accent); }
@media (max-width: 599px) {
  .strip { grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 8px; } .strip .card { padding: 10px 12px; }
}
""")
_NOTHING_CHECKED = with_details(
    "No answer of this time was checked. Open one above and say whether it was right, or let your "
    "program send it.",
    "`client.feedback` sends it",
)
_NOT_RANDOM = (
    "Feedback is not a random sample of the traffic: it comes where somebody looked. These figures "
    "hold for the {n:,} decisions that have it ({share}), and may not for the rest."
)


def show_strip(summary: DecisionSummary) -> Viewable:
    """Show the leading figures: how many answers, how often right, how many left to a person, how fast."""
    step = math.ceil(len(summary.buckets) / _SPARKS)
    groups = [summary.buckets[at : at + step] for at in range(0, len(summary.buckets), step)]
    sums = [sum(bucket.answers for bucket in group) for group in groups]
    tallest = max([*sums, 1])
    spark = "".join(f'<i style="height:{max(100 * n / tallest, 4):.0f}%"></i>' for n in sums)
    cards = [
        (
            "Answers",
            f"{summary.answers:,}",
            f'<span class="spark" aria-hidden="true">{spark}</span>',
        ),
        ("Right, of those checked", *_shares(summary.accuracy, f"none of {summary.decisions:,}")),
        ("Left to a person", *_shares(summary.abstain_rate, "")),
    ]
    if summary.unstated_rate is not None:
        cards.append(("The text does not say", *_shares(summary.unstated_rate, "")))
    slow, _ = time_text(summary.latency_p95_ms)
    note = f'<span class="note">95 % within {slow}</span>'
    cards.append(("Half answered within", time_text(summary.latency_p50_ms)[0], note))
    drawn = "".join(
        f'<div class="card"><div class="note">{escape(name)}</div>'
        f'<span class="figure">{escape(value)}</span>{note}</div>'
        for name, value, note in cards
    )
    return html_pane(
        f'<div class="strip" role="group" aria-label="Figures">{drawn}</div>',
        _STRIP_CSS,
        margin=(5, 10),
    )


def _shares(measure: Measure | None, otherwise: str) -> tuple[str, str]:
    """Return a share in whole percent, and as HTML its interval and number of answers."""
    value, _, rest = share_in_words(measure).partition(" (")
    rest = otherwise if measure is None else rest.removesuffix(")")
    return "—" if measure is None else value, f'<span class="note">{escape(rest)}</span>'


def show_details(
    summary: DecisionSummary,
    view: View,
    open_: Open,
    tables: set[str] | None = None,
    alarms: Sequence[Alarm] = (),
) -> Viewable:
    """Show the details of the strip, and when the decisions behind alarms were made."""
    tables = set() if tables is None else tables
    return stack(
        small_text(_about(summary, view)),
        _rates(summary, open_, tables, alarms),
        heading("How sure, compared with how right"),
        _calibration(summary, open_, tables),
        heading("By model and decision"),
        _groups(summary, open_),
    )


def clock(at: float) -> str:
    """Return a day and time, in UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%d %b %H:%M:%S")


def share_text(measure: Measure | None) -> tuple[str, str]:
    """Return a share in per cent, and its interval and n."""
    return _measure_text(measure, "{:.1%}", "{:.1%}", "no interval: one text, ")


def time_text(measure: Measure | None) -> tuple[str, str]:
    """Return a time in milliseconds, and its interval and n."""
    return _measure_text(measure, "{:,.0f} ms", "{:,.0f}", "too few for an interval, ")


def _measure_text(
    measure: Measure | None, value_as: str, bound_as: str, without: str
) -> tuple[str, str]:
    """Return a value, and its interval and n; ``without`` says that there is no interval."""
    if measure is None:
        return "—", "n = 0"
    value = value_as.format(measure.value)
    if measure.low is None or measure.high is None:
        return value, f"{without}n = {measure.n:,}"
    interval = f"{bound_as.format(measure.low)} to {value_as.format(measure.high)}"
    return value, f"{interval}, n = {measure.n:,}"


def _about(summary: DecisionSummary, view: View) -> str:
    """Return the scope of the figures, in sentences."""
    window = f"{view.window}, {clock(summary.since)} to {clock(summary.until)} UTC"
    times = (summary.latency_p50_ms, summary.latency_p95_ms)
    half, most = ("{} ({})".format(*time_text(measure)) for measure in times)
    sentences = [
        f"Stored decisions of the {window}. Ranges are 95 % intervals.",
        f"Times are the server's: half within {half}, 95 % within {most}.",
    ]
    if summary.server is not None:
        server = summary.server
        value, interval = share_text(server.error_rate)
        sentences.append(
            f"Requests that failed: {value} ({interval}), and {server.refused:,} were refused; of "
            f"everybody's requests to this server since it started at {clock(server.since)} UTC, "
            "stored or not."
        )
    return " ".join(sentences)


def _rates(
    summary: DecisionSummary, open_: Open, tables: set[str], alarms: Sequence[Alarm]
) -> Viewable:
    def open_bucket(place: int) -> None:
        start = summary.buckets[place].start
        end = start + summary.bucket_s
        name = f"{clock(start)} to {clock(end)} UTC"
        open_(AnswerFilter(name=name, since=start, until=end))

    filled = [place for place, bucket in enumerate(summary.buckets) if bucket.decisions]
    data = mark_table(
        ("from, UTC", "decisions", "abstained", "with feedback"),
        [
            (
                clock(bucket.start),
                f"{bucket.decisions:,}",
                f"{bucket.abstained:,}",
                f"{bucket.with_feedback:,}",
            )
            for bucket in (summary.buckets[place] for place in filled)
        ],
        open_=lambda i: open_bucket(filled[i]),
        label=f"Decisions by {unit_of(summary.bucket_s)}",
        numbers=(1, 2, 3),
    )
    bands = [(alarm.evidence.since, alarm.evidence.until) for alarm in alarms]
    note = [small_text(_BANDS)] if bands else []
    return stack(
        figures.show(rate_chart(summary, open_bucket, bands)),
        *note,
        with_table("Show the bars as a table", data, tables),
    )


def _calibration(summary: DecisionSummary, open_: Open, tables: set[str]) -> Viewable:
    share = summary.feedback_share
    n = 0 if summary.accuracy is None else summary.accuracy.n
    if not n or share is None:
        return empty(_NOTHING_CHECKED)

    if n < FEW:
        text = f"{n:,} of {FEW} right answers known: fewer say nothing about how sure it may be believed."
        return small_text(text)

    def open_bin(place: int) -> None:
        row = summary.reliability[place]
        name = f"with feedback, top probability above {row.low:g} and up to {row.high:g}"
        open_(AnswerFilter(name=name, has_feedback=True, p_from=row.low, p_to=row.high))

    filled = [place for place, row in enumerate(summary.reliability) if row.n]
    rows = [
        (
            bin_name(row),
            "—" if row.mean_top_probability is None else f"{row.mean_top_probability:.3f}",
            measure_text(row.accuracy),
        )
        for row in (summary.reliability[place] for place in filled)
    ]
    data = mark_table(
        ("promised", "mean", "accuracy (95 % interval, n)"),
        rows,
        label="How sure against how right, by feedback",
        open_=lambda i: open_bin(filled[i]),
    )
    return stack(
        small_text(_NOT_RANDOM.format(n=n, share=f"{share.value:.1%}")),
        figures.show(reliability_chart(summary.reliability, open_bin)),
        figures.show(bin_counts_chart(summary.reliability, open_bin)),
        with_table("Show the points as a table", data, tables),
    )


def _groups(summary: DecisionSummary, open_: Open) -> Viewable:
    def open_group(place: int) -> None:
        group = summary.groups[place]
        named = f"{group.decision} by {_name(group)}"
        open_(AnswerFilter(name=named, decision=group.decision, model=_name(group)))

    views: list[Viewable] = [
        mark_table(
            ("model", "decision", "decisions", "abstained", "with feedback", "right on feedback"),
            [
                (
                    _name(group),
                    group.decision,
                    f"{group.decisions:,}",
                    _as_line(group.abstain_rate),
                    _as_line(group.feedback_share),
                    _as_line(group.accuracy),
                )
                for group in summary.groups
            ],
            label="Figures by model and decision",
            numbers=(2,),
            open_=open_group,
            opens="Show its decisions",
        )
    ]
    if summary.groups_left_out:
        views.append(
            small_text(
                f"{summary.groups_left_out:,} more with fewer decisions are left out; choose a "
                "model or a decision above."
            )
        )
    return stack(*views)


def _name(group: DecisionGroup) -> str:
    return group.version or group.model


def _as_line(measure: Measure | None) -> str:
    value, rest = share_text(measure)
    return "—" if measure is None else f"{value} ({rest})"


def with_table(label: str, data: Viewable, tables: set[str]) -> Viewable:
    """Return a button that shows a table; ``tables`` keeps the labels of those that are shown."""
    data.visible = label in tables

    def turn(_: object) -> None:
        data.visible = not data.visible
        (tables.add if data.visible else tables.discard)(label)

    return stack(action_button(label, turn, variant="text", size="small"), data)
