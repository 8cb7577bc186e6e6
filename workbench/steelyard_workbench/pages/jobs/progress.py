"""How far a job is, how fast it goes and when it is done, as one sees it from outside."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import panel_material_ui as pmui
from panel.viewable import Viewable

from steelyard.models.setup_wire import SETUP
from steelyard.wire.jobs import JobSummary
from steelyard_workbench.kit.basics import Boxed, action_button, small_text
from steelyard_workbench.kit.components.progress_bar import ProgressBar
from steelyard_workbench.kit.views import refused_button

#: Seconds that a rate is of: the last half minute predicts the rest better than the whole.
WINDOW_S = 30.0
#: How a job ended, where the server's word says little.
_ENDED = {
    "gate failed": "check not passed",
    "joined": "made a model",
    "refused": "not as good as before",
    "inconclusive": "too few rows to tell",
}
#: Phases whose steps say nothing to a person: how much of them is done stands in their place.
_PHASES = {
    "features": "reading the texts",
    "heads": "learning the answers",
    "lora": "learning deeper",
    "calibration": "calibrating",
    "scoring": "answering the rows for the check",
}


class Track:
    """The observations of one piece of work."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()
        self._phase = ""
        self._loss_phase = ""
        self._steps = 0
        self.losses: list[tuple[int, float]] = []

    def add(self, at: float, phase: str, step: int, steps: int, loss: float | None = None) -> None:
        """Take down how far the work is, at seconds of a clock that does not go back."""
        if phase != self._phase or (self._seen and step < self._seen[-1][1]):
            self._seen.clear()
            self._phase = phase
        self._steps = steps
        self._seen.append((at, step))
        while len(self._seen) > 2 and at - self._seen[1][0] >= WINDOW_S:
            self._seen.popleft()
        if loss is None:
            return
        if phase != self._loss_phase:
            self.losses.clear()
            self._loss_phase = phase
        if not self.losses or step > self.losses[-1][0]:
            self.losses.append((step, loss))

    def follow(self, at: float, work: JobSummary) -> None:
        """Take down how far a job is, once it runs."""
        now = work.progress
        if now is not None and now.steps:
            self.add(at, now.phase, now.step, now.steps, now.loss)

    @property
    def rate(self) -> float | None:
        """Steps a second over the last half minute; ``None`` before two were seen."""
        if len(self._seen) < 2:
            return None
        (first_at, first), (last_at, last) = self._seen[0], self._seen[-1]
        if last_at <= first_at or last <= first:
            return None
        return (last - first) / (last_at - first_at)

    @property
    def left_s(self) -> float | None:
        """Seconds that the rest of the phase takes at this rate; ``None`` where it is not known."""
        rate = self.rate
        if rate is None:
            return None
        return max(self._steps - self._seen[-1][1], 0) / rate

    def text(self, unit: str) -> str:
        """Return in words the rate, but of steps, and the time that is left; empty where neither is known."""
        rate, left_s = self.rate, self.left_s
        if rate is None or left_s is None:
            return ""
        left = f"about {duration(left_s)} left"
        if unit == "steps":
            return left
        speed = f"{rate:.0f} {unit}/s" if rate >= 1 else f"{rate * 60:.1f} {unit}/min"
        return f"{speed}, {left}"


def duration(seconds: float) -> str:
    """Return a span of time in words.

    >>> duration(5), duration(90), duration(7300)
    ('5 s', '2 min', '2 h')
    """
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h"


def progress_text(job: JobSummary, track: Track) -> str:
    """Return in words how far a job is, how fast it goes and when it is done."""
    now = job.progress
    parts = [job.status]
    if now is not None and now.steps:
        if now.unit == "steps":
            parts.append(f"{_PHASES.get(now.phase, now.phase)}: {percent_done(job)} %")
        else:
            parts.append(f"{now.phase}: {now.step:,} of {now.steps:,} {now.unit}")
        if job.status == "running":
            parts.append(track.text(now.unit) or "estimating how long it takes")
    return ", ".join(parts)


def percent_done(job: JobSummary) -> int:
    """Return how much of the phase is done."""
    now = job.progress
    return round(100 * now.step / now.steps) if now is not None and now.steps else 0


def title_of(work: JobSummary) -> str:
    """Return a job in words; a setup names what it does itself, as ``backup of the home``."""
    return work.name if work.kind == SETUP.kind else f"{work.noun} of {work.of}"


def ended_text(work: JobSummary) -> str:
    """Return how a job ended in words; empty while it has not."""
    word, colon, why = (work.ended or "").partition(":")
    return f"{_ENDED.get(word, word)}{colon}{why}"


class ActiveRow(Boxed):
    """Work that waits or runs, and its progress; ``forbidden`` says why nothing may be cancelled."""

    def __init__(
        self,
        work: JobSummary,
        open_: Callable[[JobSummary], None],
        cancel: Callable[[JobSummary], None] | None = None,
        forbidden: str = "",
    ) -> None:
        super().__init__()
        self._text = small_text("")
        self._bar = ProgressBar(
            label=f"Progress of {work.id}", value=0, sizing_mode="stretch_width"
        )
        name = action_button(title_of(work), lambda _: open_(work), variant="text")
        head: list[Viewable] = [name]
        if forbidden:
            head.append(refused_button("Cancel…", [forbidden]))
        elif cancel is not None:
            stops = work.status == "cancelling"
            head.append(
                action_button("Cancel…", lambda _: cancel(work), color="danger", disabled=stops)
            )
        self._box = pmui.Paper(
            pmui.Row(*head), self._bar, self._text, sizing_mode="stretch_width", margin=(6, 10)
        )

    @property
    def text(self) -> str:
        """How far the work is, in words."""
        return str(self._text.object)

    def update(self, work: JobSummary, track: Track) -> None:
        """Show how far it is now."""
        self._text.object = progress_text(work, track)
        self._bar.value = percent_done(work)
