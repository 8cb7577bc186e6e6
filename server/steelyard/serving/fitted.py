"""The engine that suits this processor: measured at a server's first start, kept in its home.

Which precision is faster depends on the processor. int8 is taken where it takes enough less CPU than
float32 and gives about the same answers; the precision of the settings is taken as it is.
"""

from __future__ import annotations

import platform
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

from steelyard.durable import write_atomically
from steelyard.processes import count_processors
from steelyard.settings import Settings, home_of
from steelyard.version import __version__
from steelyard.wire.decoding import decode

if TYPE_CHECKING:
    from steelyard.decisions.rendering import RenderedRequest
    from steelyard.scoring.assets import BaseModel

FILE = "engine.json"
AUTO = "auto"
INT8, FLOAT32 = "onnxruntime-int8", "onnxruntime-float32"
#: How many times the CPU of int8 float32 must take, and how much a probability may differ at most,
#: for int8 to be taken.
LEAST_GAIN, MOST_DIFFERENCE = 1.2, 0.25
#: One thread is taken where all cores make a long pass less than this many times as fast, and where
#: one thread had this share of a core: with less, others were busy and nothing is known of all cores.
LEAST_SPEEDUP, LEAST_SHARE = 1.1, 0.9
#: Seconds of passes, beside two for the process and the models; and until the process is given up.
MEASURE_S, _GIVEN_UP_S = 3.0, 10.0
_MOST_ROUNDS = 4
#: Instructions that decide how fast products are, as Linux names them.
_INSTRUCTIONS = (
    *("avx2", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16", "amx_int8"),
    *("asimddp", "i8mm", "sve"),
)
_SENTENCES = (
    "My card was charged twice for the order of last week.",
    "The parcel was to come on Monday and nobody has brought it yet.",
    "After the update the app closes as soon as I open a project.",
    "Please change the address of the invoice before the end of the month.",
    "I cannot sign in, and the mail for a new password does not arrive.",
    "Thank you, the second technician repaired it within an hour.",
    "The lamp came with a broken switch, so I would like my money back.",
    "Could you tell me whether the course is open to beginners?",
    "We have waited for three weeks and nobody answers the telephone.",
    "The report on page four shows last year's figures.",
)
_DECISIONS = (
    {
        "id": "team",
        "question": "Which team should answer this message?",
        "outcomes": ["billing", "shipping", "technical support", "sales"],
    },
    {"id": "refund", "kind": "binary", "question": "Does the customer ask for money back?"},
    {
        "id": "urgency",
        "kind": "ordinal",
        "question": "How soon does this need an answer?",
        "rubric": ["any time this week", "today", "at once"],
    },
)


class FittedEngine(msgspec.Struct, frozen=True):
    """The measures of a processor, and the chosen engine."""

    machine: str
    engine: str
    #: 0 for all cores.
    threads: int
    #: CPU of a pass on 1,800 characters in float32, over that in int8.
    gain: float
    #: The largest difference of a probability between the two.
    difference: float
    #: How many times as fast all cores are as one thread.
    speedup: float

    @property
    def summary(self) -> str:
        """The measures, in a line."""
        threads = "one thread" if self.threads == 1 else "all cores"
        return (
            f"{self.engine} on {threads}: float32 takes {self.gain:.2f} times the CPU of int8, "
            f"probabilities differ by {self.difference:.3f} at most, all cores are "
            f"{self.speedup:.2f} times as fast as one thread"
        )


def fitted(
    settings: Settings, measure: Callable[[], FittedEngine | None] | None = None
) -> Settings:
    """Return the settings with the engine that suits this processor, where they leave it open.

    Without ``measure`` the stored measurement is taken, or else the model's own choice.
    """
    if not is_open(settings):
        return settings
    path = home_of(settings) / FILE
    choice = stored(path)
    if choice is None and measure is not None:
        choice = measure()
        # A home that takes no file is reported elsewhere; then each start measures.
        with suppress(OSError):
            if choice is not None:
                write_atomically(path, msgspec.json.encode(choice))
    if choice is None:
        return settings
    # The model's own choice stays open: other models may have another.
    engine = AUTO if choice.engine == INT8 else choice.engine
    return replace(settings, engine=engine, threads=settings.threads or choice.threads)


def is_open(settings: Settings) -> bool:
    """Return whether the settings leave the engine of passes in this process to the server."""
    return settings.engine == AUTO and not settings.scorer


def stored(path: Path) -> FittedEngine | None:
    """Return this processor's measures with these versions; ``None`` without any."""
    try:
        choice = decode(path.read_bytes(), FittedEngine)
    except (OSError, msgspec.DecodeError):
        return None
    return choice if choice.machine == describe_machine() else None


def describe_machine() -> str:
    """Return the processor, its instructions and cores, and the versions that passes depend on."""
    lines = _processor()
    name = lines.get("model name") or platform.processor() or platform.machine()
    flags = processor_flags()
    instructions = " ".join(flag for flag in _INSTRUCTIONS if flag in flags) or "no list of these"
    versions = f"onnxruntime {version('onnxruntime')}, steelyard {__version__}"
    return f"{name} ({instructions}), {count_processors()} cores, {versions}"


def processor_flags() -> frozenset[str]:
    """Return the instructions of this processor, as Linux names them; none where it does not say."""
    lines = _processor()
    return frozenset(lines.get("flags", lines.get("Features", "")).split())


def _processor() -> dict[str, str]:
    """Return Linux's description of the first processor."""
    lines: dict[str, str] = {}
    with suppress(OSError):
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
        for line in text.partition("\n\n")[0].splitlines():
            name, _, value = line.partition(":")
            lines[name.strip()] = value.strip()
    return lines


def measure_apart() -> FittedEngine | None:
    """Measure in a process of its own, whose memory goes with it; ``None`` where that fails."""
    command = [sys.executable, "-m", __name__]
    try:
        done = subprocess.run(  # noqa: S603  # our own module
            command, capture_output=True, check=True, timeout=_GIVEN_UP_S
        )
        return decode(done.stdout, FittedEngine)
    except (OSError, subprocess.SubprocessError, msgspec.DecodeError):
        return None


def measure() -> FittedEngine:
    """Measure passes in both precisions for some seconds; choose the engine and its threads."""
    from steelyard.scoring.assets import load_base_model

    int8, float32 = (_Measured(load_base_model(name, threads=1)) for name in (INT8, FLOAT32))
    every = _Measured(load_base_model(INT8)) if count_processors() > 1 else int8
    sides = (int8, float32, every)
    try:
        difference = max(
            float(np.abs(left - right).max())
            for left, right in zip(int8.probabilities(), float32.probabilities(), strict=True)
        )
        ends_at = time.monotonic() + MEASURE_S
        for turn in range(_MOST_ROUNDS):
            for side in sides if turn % 2 else reversed(sides):
                side.run()
            if turn and time.monotonic() > ends_at:
                break
    finally:
        for side in set(sides):
            side.model.scorer.close()
    return choose(
        gain=float32.cpu_s / int8.cpu_s,
        difference=difference,
        speedup=int8.wall_s / every.wall_s,
        share=int8.cpu_s / int8.wall_s,
    )


def choose(*, gain: float, difference: float, speedup: float, share: float) -> FittedEngine:
    """Return the engine and threads for the measures."""
    is_int8 = gain >= LEAST_GAIN and difference <= MOST_DIFFERENCE
    return FittedEngine(
        machine=describe_machine(),
        engine=INT8 if is_int8 else FLOAT32,
        threads=1 if speedup < LEAST_SPEEDUP and share >= LEAST_SHARE else 0,
        gain=round(gain, 3),
        difference=round(difference, 4),
        speedup=round(speedup, 3),
    )


class _Measured:
    """A model that is measured, and the least that a long pass took it."""

    def __init__(self, model: BaseModel) -> None:
        from steelyard.serving.decide import DecideService

        self.model = model
        self.cpu_s = self.wall_s = float("inf")
        self._service = DecideService(
            model_name=model.scorer.name,
            temperatures=model.temperatures,
            tokenizer=model.tokenizer,
        )
        self._long = self._requests([" ".join(_SENTENCES * 3)])

    def _requests(self, contexts: Sequence[str]) -> list[RenderedRequest]:
        decisions = list(_DECISIONS)
        return [
            self._service.prepare({"context": context, "decisions": decisions}).rendered
            for context in contexts
        ]

    def probabilities(self) -> list[NDArray[np.float64]]:
        """Return the probabilities of every decision of the short contexts."""
        requests = self._requests(_SENTENCES)
        scored = self.model.scorer.score(requests)
        return [
            self.model.temperatures.probabilities(answer.logits, decision.kind)
            for request, answers in zip(requests, scored, strict=True)
            for decision, answer in zip(request.decisions, answers, strict=True)
        ]

    def run(self) -> None:
        """Score the long context once, and note its time."""
        cpu, wall = time.process_time(), time.perf_counter()
        self.model.scorer.score(self._long)
        self.cpu_s = min(self.cpu_s, time.process_time() - cpu)
        self.wall_s = min(self.wall_s, time.perf_counter() - wall)


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode(measure()))
