"""The requests that every contestant is sent: the same bytes, in the dialect that all of them speak.

Texts are those of ``workloads.py``: questions and outcomes depend on their numbers alone, and every
request has a context of its own.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from workloads import CONTEXTS, make_context, make_payload

PATH = "/v1/systemone"
#: Contestants that know other services' names of models take it for their own default model; the
#: others do not read it.
MODEL = "jev-1"


@dataclass(frozen=True, slots=True, order=True)
class Size:
    """How much a request asks: questions, outcomes of each, and the context's length by name."""

    questions: int
    outcomes: int
    context: str

    def is_part_of(self, other: Size) -> bool:
        """Whether a request of this size has no more of anything, and the same type."""
        return (
            self.questions <= other.questions
            and self.outcomes <= other.outcomes
            and (self.outcomes == 2) == (other.outcomes == 2)
            and CONTEXTS[self.context] <= CONTEXTS[other.context]
        )

    def words(self) -> str:
        return f"{self.questions} x {self.outcomes}, {self.context}"

    def record(self) -> dict[str, int | str]:
        return asdict(self)


def make_body(size: Size, number: int) -> bytes:
    """Return the body of one request; another number gives another context."""
    native = json.loads(
        make_payload(
            context=make_context(CONTEXTS[size.context], number),
            n_questions=size.questions,
            n_outcomes=size.outcomes,
        )
    )
    questions = {}
    for decision in native["decisions"]:
        question = {"type": "noul", "instructions": decision["question"]}
        if "outcomes" in decision:
            question["type"] = "choice"
            question["criteria"] = dict.fromkeys(decision["outcomes"])
        questions[decision["id"]] = question
    return json.dumps({"model": MODEL, "state": native["context"], "questions": questions}).encode()


def make_request(body: bytes) -> bytes:
    """Return a request as it goes over the wire; it names no port, so that all are sent the same."""
    lines = [
        f"POST {PATH} HTTP/1.1",
        "Host: 127.0.0.1",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


def make_requests(size: Size, first: int, n: int) -> list[bytes]:
    """Return ``n`` requests whose contexts are those from number ``first`` on."""
    return [make_request(make_body(size, first + number)) for number in range(n)]
