"""A fixed set of questions for a connected model: whether its answers hold, and how long they take."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from itertools import pairwise
from time import perf_counter

import numpy as np
from msgspec import Struct

from steelyard.decisions.kinds import BINARY_NAMES
from steelyard.decisions.rendering import RenderedDecision, RenderedRequest
from steelyard.errors import SteelyardError
from steelyard.scoring.protocol import ScoredDecision
from steelyard.serving.connected.breaker import RemoteFailureError

#: Asks one request, without waiting for it.
Submit = Callable[[RenderedRequest, float], Future[list[ScoredDecision]]]

_TEAMS = ("billing", "deliveries", "technical support", "sales")
#: Texts, the team that each is for, and a yes/no question with its negation.
CASES = (
    (
        "My card was charged twice for order 118.",
        ("Was the customer charged more than once?", "Was the customer not charged twice?"),
    ),
    (
        "The parcel arrived two weeks late and the box was open.",
        ("Did the parcel arrive late?", "Did the parcel not arrive late?"),
    ),
    (
        "Since the update the app closes as soon as I open it.",
        ("Does the app crash?", "Does the app not crash?"),
    ),
    (
        "We would like an offer for forty more seats.",
        ("Does the writer want to buy?", "Does the writer not want to buy?"),
    ),
    (
        "The invoice of March was paid on the second of April.",
        ("Is the invoice paid?", "Is the invoice unpaid?"),
    ),
    (
        "The courier says that nobody was at home, but I was.",
        ("Was the parcel delivered?", "Was the parcel not delivered?"),
    ),
    (
        "Everything works again, thank you for the quick help.",
        ("Is the problem solved?", "Is the problem not solved?"),
    ),
    (
        "Could somebody call me about the yearly plan?",
        ("Does the writer ask for a call?", "Does the writer not ask for a call?"),
    ),
)


class CheckReport(Struct, frozen=True, kw_only=True):
    """The result of a check; shares are of the answered texts, times in milliseconds."""

    asked: int
    answered: int
    #: Messages of failures, each once.
    failures: list[str]
    p50_ms: float | None
    max_ms: float | None
    flips_when_reordered: float | None
    flips_when_negated: float | None
    share_of_yes: float | None
    #: Mean probability of the next token on the outcomes' labels; of language models.
    share_on_outcomes: float | None
    #: Of judges that may think: the share of answers that they wrote before.
    share_thought: float | None


def check_model(submit: Submit, timeout_s: float) -> CheckReport:
    """Ask about every text in two orders of the outcomes, and with its question negated.

    A reordered answer that flips is wrong; one to a negated question should flip.
    """
    failures: dict[str, None] = {}
    times: list[float] = []
    masses: list[float] = []
    thought: list[bool] = []

    def ask(context: str, kind: str, question: str, names: tuple[str, ...]) -> str | None:
        decision = RenderedDecision(kind, question, names, names)
        began = perf_counter()
        try:
            [scored] = submit(RenderedRequest(context, (decision,)), timeout_s).result(timeout_s)
        except SteelyardError as error:
            reported = error.reported if isinstance(error, RemoteFailureError) else ""
            failures[f"{error.message} It says: {reported}" if reported else error.message] = None
            return None
        except TimeoutError:
            failures[f"No answer within {timeout_s:g} s."] = None
            return None
        times.append((perf_counter() - began) * 1e3)
        if scored.mass is not None:
            masses.append(scored.mass)
        if scored.cpu_ms is not None:
            thought.append(scored.thought is not None)
        return names[int(scored.logits.argmax())]

    orders, questions = [], []
    for place, (context, wordings) in enumerate(CASES):
        turned = _TEAMS[place % 3 + 1 :] + _TEAMS[: place % 3 + 1]
        orders.append([ask(context, "single", "Which team?", names) for names in (_TEAMS, turned)])
        questions.append([ask(context, "binary", question, BINARY_NAMES) for question in wordings])
    yes = [answer == "yes" for pair in questions for answer in pair if answer is not None]
    return CheckReport(
        asked=4 * len(CASES),
        answered=len(times),
        failures=list(failures),
        p50_ms=float(np.median(times)) if times else None,
        max_ms=max(times, default=None),
        flips_when_reordered=_flips(orders),
        flips_when_negated=_flips(questions),
        share_of_yes=float(np.mean(yes)) if yes else None,
        share_on_outcomes=float(np.mean(masses)) if masses else None,
        share_thought=float(np.mean(thought)) if thought else None,
    )


def _flips(pairs: list[list[str | None]]) -> float | None:
    whole = [pair for pair in pairs if None not in pair]
    return float(np.mean([a != b for pair in whole for a, b in pairwise(pair)])) if whole else None
