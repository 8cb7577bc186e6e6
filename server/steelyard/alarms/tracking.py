"""Sums kept of a watched model between two looks, over buckets of decisions; no decision is kept.

A stream is what comes from the same source, such as the answers to one decision. It has figures, each
with a reference, and of each the sums that evidence needs, over the run, its latest buckets, and the
bucket that is being filled. Evidence is looked at whenever a bucket is full.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from msgspec import Struct, field

from steelyard.alarms.budget import Watch, threshold
from steelyard.calibration import sequences
from steelyard.calibration.sequences import BUCKET, MAX_BUCKETS, N_BETS, RUN, WINDOW, FloatArray

#: Values of one decision or answer, by figure; a share's that are 0 may be left out.
Values = Mapping[str, float]

#: Outcomes of a decision with figures of their own; other answers count as ``OTHER``.
MOST_OUTCOMES = 64
OUTCOME = "outcome:"
OTHER = f"{OUTCOME}(other)"
ABSTAINED, P_TOP = "abstained", "p_top"
RIGHT, LOSS, GAP = "right", "loss", "gap"
SLOW, FAILED, ESCALATED = "slow", "failed", "escalated"
#: Figures that are means of values from 0 to 1; the others are shares.
_MEANS = frozenset({P_TOP, LOSS, GAP})
#: Figures that are watched to one side: 1 where a rise is bad, -1 where a fall is.
_SIDES = {RIGHT: -1, LOSS: 1, SLOW: 1, FAILED: 1, ESCALATED: 1}
#: The figures of each watch but that of shares.
_FIGURES: dict[Watch, str] = {
    "top_probability": P_TOP,
    "accuracy": RIGHT,
    "log_loss": LOSS,
    "calibration": GAP,
    "latency": SLOW,
    "errors": FAILED,
    "escalations": ESCALATED,
}
#: The chance that a reference's mean is outside its interval.
_REFERENCE_LEVEL = 1e-4
#: Values that a reference has at least.
MIN_REFERENCE = 100
#: Values after which a raised alarm may clear, all of the latest ones speaking for the reference.
CLEAR_AFTER = 500


class Figure(Struct):
    """The reference of a figure: its values' number, sum and sum of squares."""

    n: float
    total: float
    squares: float
    #: The interval that a mean is held against.
    low: float = 0.0
    high: float = 1.0

    @property
    def mean(self) -> float:
        """The mean of its values."""
        return self.total / self.n

    @property
    def variance(self) -> float:
        """The variance of its values."""
        return max(self.squares / self.n - self.mean**2, 0.0)


class Bucket(Struct):
    """Sums of a stretch: by figure the hits of a share, or a mean's sum, squares and logs of bets."""

    since: float = 0.0
    until: float = 0.0
    n: int = 0
    sums: dict[str, list[float]] = {}

    def add(self, other: Bucket) -> None:
        """Add the sums of a later period."""
        if not self.n:
            self.since = other.since
        self.until = other.until
        self.n += other.n
        for name, sums in other.sums.items():
            current = self.sums.get(name)
            self.sums[name] = list(sums) if current is None else _plus(current, sums)


class Stream(Struct):
    """Sums of one watched source."""

    source: Literal["answers", "feedback", "operations", "errors"]
    decision: str = ""
    figures: dict[str, Figure] = {}
    run: Bucket = field(default_factory=Bucket)
    latest: list[Bucket] = []
    open: Bucket = field(default_factory=Bucket)
    #: Watches whose alarm is raised, and how many values came since.
    raised: dict[Watch, int] = {}
    counted: int = 0

    def watches(self) -> list[Watch]:
        """Return the watched metrics of this source."""
        single: list[Watch] = [watch for watch, name in _FIGURES.items() if name in self.figures]
        return ["shares", *single] if self._shares() else single

    def figures_of(self, watch: Watch) -> list[str]:
        """Return the names of the figures whose evidence a watch averages."""
        if watch != "shares":
            return [_FIGURES[watch]]
        names = self._shares()
        if OTHER in names and not self._is_seen(OTHER):
            names.remove(OTHER)
            outcomes = [name for name in names if name.startswith(OUTCOME)]
            if len(outcomes) == 2:
                names.remove(outcomes[1])
        return names

    def _shares(self) -> list[str]:
        return [name for name in self.figures if name.startswith(OUTCOME) or name == ABSTAINED]

    def _is_seen(self, name: str) -> bool:
        in_buckets = (name in bucket.sums for bucket in (self.run, *self.latest))
        return self.figures[name].total > 0 or any(in_buckets)

    def name_of(self, key: str) -> str:
        """Return under which figure a value counts; that of an outcome of no figure under another."""
        return OTHER if key.startswith(OUTCOME) and key not in self.figures else key

    def restart(self) -> None:
        """Begin a new run; the bucket that is being filled is part of it."""
        self.run, self.latest = Bucket(), []


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedFigure:
    """A figure over a stretch of time beside its reference."""

    figure: str
    value: float
    low: float
    high: float
    n: int
    since: float
    until: float
    reference: float
    reference_interval: tuple[float, float]
    reference_n: int
    variation: tuple[float, float, float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmMove:
    """An alarm that is to be raised or cleared."""

    watch: Watch
    is_raised: bool
    evidence: float
    threshold: float
    estimate: TrackedFigure


def figures_of(units: Sequence[Values], names: Iterable[str] = ()) -> dict[str, Figure]:
    """Return the figures of a reference's values; none of too few.

    ``names`` are figures that are watched even where every value is 0.
    """
    if len(units) < MIN_REFERENCE:
        return {}
    sums: dict[str, list[float]] = {}
    for values in units:
        for name, value in values.items():
            totals = sums.setdefault(name, [0.0, 0.0])
            totals[0] += value
            totals[1] += value * value
    n, outcomes = float(len(units)), [name for name in sums if name.startswith(OUTCOME)]
    if outcomes:
        outcomes.sort(key=lambda name: (-sums[name][0], name))
        for name in outcomes[MOST_OUTCOMES:]:
            sums[OTHER] = _plus(sums.get(OTHER, [0.0, 0.0]), sums.pop(name))
        sums.setdefault(OTHER, [0.0, 0.0])
    figures = {name: Figure(n, *sums.get(name, [0.0, 0.0])) for name in (*sums, *names)}
    for name, figure in figures.items():
        if name in _MEANS:
            figure.low, figure.high = sequences.reference_interval(
                figure.mean, figure.variance, int(n), _REFERENCE_LEVEL
            )
    return figures


def add(
    stream: Stream, at: float, values: Values, *, decisions: int, false_alarms: float
) -> list[AlarmMove]:
    """Count the values of a decision; return the alarms that are to be raised or cleared by it."""
    bucket = stream.open
    if not bucket.n:
        bucket.since = at
    bucket.until = max(bucket.until, at)
    bucket.n += 1
    stream.counted += 1
    for key, value in values.items():
        name = stream.name_of(key)
        figure = stream.figures.get(name)
        if figure is None or not (value or name in _MEANS):
            continue
        sums = [value]
        if name in _MEANS:
            sums = [value, value * value, *sequences.bets_on(value, figure.low, figure.high)]
        current = bucket.sums.get(name)
        bucket.sums[name] = sums if current is None else _plus(current, sums)
    return _close(stream, decisions, false_alarms) if bucket.n >= BUCKET else []


def evidence(stream: Stream, watch: Watch) -> tuple[float, str, int | None]:
    """Return a watch's evidence, the figure that has most of it, and since which bucket; ``None`` is the run."""
    names = stream.figures_of(watch)
    if not stream.run.n:
        return -math.inf, names[0], None
    by_figure, best = [], (-math.inf, names[0], None)
    sizes = np.array([stream.run.n, *_since_each([[bucket.n] for bucket in stream.latest])[:, 0]])
    for name in names:
        sums = _sums(stream, name)
        of = _evidence_of(name, stream.figures[name], sums, sizes)
        by_figure.append(sequences.run_evidence(of[0], of[1:]))
        place = int(of.argmax())
        if of[place] > best[0]:
            best = (float(of[place]), name, place - 1 if place else None)  # type: ignore[assignment]
    if watch != "shares":
        return float(sequences.average_evidence(by_figure)), best[1], best[2]
    capital = sequences.capital_of(*_references(stream, names))
    average = float(sequences.average_evidence(by_figure, capital)) + math.log(sequences.BETS)
    tested = _tested(stream, names, capital)
    return (average, best[1], best[2]) if tested is None or tested[0] < average else tested


def _tested(
    stream: Stream, names: Sequence[str], capital: FloatArray
) -> tuple[float, str, int] | None:
    """Return the most evidence of a test of the latest window; ``None`` before there is a whole one."""
    first = len(stream.latest) - WINDOW // BUCKET
    if first < 0:
        return None
    window = Bucket()
    for bucket in stream.latest[first:]:
        window.add(bucket)
    hits = np.array([int(window.sums.get(name, [0.0])[0]) for name in names])
    p_values = sequences.window_evidence(window.n, *_references(stream, names))
    by_figure = sequences.tested_evidence(
        p_values[np.arange(len(names)), hits], capital, is_first=stream.run.n == window.n
    )
    place = int(by_figure.argmax())
    return float(by_figure[place]), names[place], first


def _references(stream: Stream, names: Sequence[str]) -> tuple[list[float], list[float]]:
    figures = [stream.figures[name] for name in names]
    return [figure.total for figure in figures], [figure.n for figure in figures]


def recent_evidence(stream: Stream, watch: Watch) -> float:
    """Return the evidence of the last ``CLEAR_AFTER`` values alone."""
    last = Bucket()
    for bucket in stream.latest[-CLEAR_AFTER // BUCKET :]:
        last.add(bucket)
    names = stream.figures_of(watch)
    sizes = np.array([last.n])
    by_figure = [
        _evidence_of(
            name, stream.figures[name], np.array([last.sums.get(name, _nothing(name))]), sizes
        )[0]
        for name in names
    ]
    return float(sequences.average_evidence(by_figure))


def estimate(stream: Stream, figure: str, watch: Watch, since: int | None) -> TrackedFigure:
    """Return a figure of the run or since one of the latest buckets, beside its reference."""
    window = Bucket()
    for bucket in [stream.run] if since is None else stream.latest[since:]:
        window.add(bucket)
    of = stream.figures[figure]
    sums, n = window.sums.get(figure, _nothing(figure)), window.n
    value = sums[0] / n if n else 0.0
    if figure in _MEANS:
        variance = max(sums[1] / n - value**2, 0.0) if n else 0.0
        low, high = sequences.mean_interval(value, variance, n)
        reference_interval = sequences.mean_interval(of.mean, of.variance, of.n)
    else:
        low, high = sequences.share_interval(sums[0], n)
        reference_interval = sequences.share_interval(of.total, of.n)
    variation = None
    outcomes = [name for name in stream.figures if name.startswith(OUTCOME)]
    if watch == "shares" and n:
        counts = [window.sums.get(name, [0.0])[0] for name in outcomes]
        variation = sequences.total_variation(
            counts, [stream.figures[name].total for name in outcomes]
        )
    return TrackedFigure(
        figure=figure,
        value=value,
        low=low,
        high=high,
        n=n,
        since=window.since,
        until=window.until,
        reference=of.mean,
        reference_interval=reference_interval,
        reference_n=int(of.n),
        variation=variation,
    )


def _close(stream: Stream, decisions: int, false_alarms: float) -> list[AlarmMove]:
    if stream.run.n >= RUN:
        stream.run = Bucket()
    stream.run.add(stream.open)
    stream.latest = [*stream.latest, stream.open][-MAX_BUCKETS:]
    stream.open = Bucket()
    moves, must_restart = [], False
    for watch in stream.watches():
        bound = threshold(watch, decisions=decisions, false_alarms=false_alarms)
        if watch in stream.raised:
            stream.raised[watch] += BUCKET
            if stream.raised[watch] < CLEAR_AFTER or len(stream.latest) < CLEAR_AFTER // BUCKET:
                continue
            recent = recent_evidence(stream, watch)
            if recent < 0:
                del stream.raised[watch]
                must_restart = True
                figure = evidence(stream, watch)[1]
                last = max(len(stream.latest) - CLEAR_AFTER // BUCKET, 0)
                moves.append(
                    AlarmMove(
                        watch=watch,
                        is_raised=False,
                        evidence=recent,
                        threshold=bound,
                        estimate=estimate(stream, figure, watch, last),
                    )
                )
            continue
        current, figure, since = evidence(stream, watch)
        if current >= bound:
            stream.raised[watch] = 0
            moves.append(
                AlarmMove(
                    watch=watch,
                    is_raised=True,
                    evidence=current,
                    threshold=bound,
                    estimate=estimate(stream, figure, watch, since),
                )
            )
    if must_restart:
        stream.restart()
    return moves


def _evidence_of(name: str, figure: Figure, sums: FloatArray, sizes: FloatArray) -> FloatArray:
    """Return the evidence of each stretch; ``sums`` has a row for each, and ``sizes`` its values."""
    side = _SIDES.get(name, 0)
    if name in _MEANS:
        return sequences.mean_evidence(sums[:, 2:], side=side)
    return sequences.share_evidence(sums[:, 0], sizes, figure.total, figure.n, side=side)


def _sums(stream: Stream, name: str) -> FloatArray:
    """Return the sums of the run, and then since each of the latest buckets."""
    nothing = _nothing(name)
    latest = [bucket.sums.get(name, nothing) for bucket in stream.latest]
    return np.concatenate([[stream.run.sums.get(name, nothing)], _since_each(latest)])


def _since_each(rows: Sequence[Sequence[float]]) -> FloatArray:
    since: FloatArray = np.cumsum(np.array(rows, dtype=np.float64)[::-1], axis=0)[::-1]
    return since


def _nothing(name: str) -> list[float]:
    return [0.0] * (2 + N_BETS if name in _MEANS else 1)


def _plus(sums: Sequence[float], other: Sequence[float]) -> list[float]:
    return [a + b for a, b in zip(sums, other, strict=True)]
