"""The rules of a valid decide request, all of them checked before anything is refused.

Three passes over one value, each noting what it finds and none stopping at the first: is it strict
JSON, does it have the shape of the wire's struct, and do its fields agree with each
other. A field that failed one pass is left out of the next. Not here: what depends on this server,
such as which models it has (``steelyard.serving.decide``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from steelyard.decisions.images import check_ids
from steelyard.decisions.kinds import Decision
from steelyard.decisions.outcomes import read_outcomes
from steelyard.decisions.policy import read_policy
from steelyard.decisions.wire import DecideRequest, Kind
from steelyard.wire.limits import MAX_DECISIONS
from steelyard.wire.payloads import INLINE_BYTES, open_payload
from steelyard.wire.violations import BODY, Path, Violations, show

#: Past this many characters an outcome's name is shared by every decision that has such names.
MAX_OWN_NAME_CHARACTERS = 500

_CONTEXT: Path = (*BODY, "context")
_IMAGES: Path = (*BODY, "images")


@dataclass(frozen=True, slots=True)
class ValidRequest:
    """A decide request with nothing wrong in it."""

    context: Any
    decisions: tuple[Decision, ...]
    model: str | None
    fallback: str | tuple[str, ...] = "auto"
    temperature: float | None = None
    has_images: bool = False
    store: bool | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    #: Where the context stands in the body.
    context_path: Path = _CONTEXT

    @property
    def is_long(self) -> bool:
        """Whether rendering or linting it is work for a thread."""
        n_characters = len(str(self.context))
        for decision in self.decisions:
            n_characters += decision.n_characters
            if n_characters > INLINE_BYTES:
                return True
        return n_characters > INLINE_BYTES


def read_request(
    payload: bytes | bytearray | Mapping[str, Any] | object,
    *,
    shape: type[DecideRequest] = DecideRequest,
) -> ValidRequest:
    """Read a decide request, or refuse it with everything that is wrong in it.

    >>> decision = {"id": "urgent", "kind": "binary", "question": "Is it urgent?"}
    >>> read_request({"context": "Hi", "decisions": [decision]}).decisions[0].outcomes.names
    ('yes', 'no')
    """
    found = Violations()
    value = open_payload(payload, shape, found)
    decisions = read_decisions(value, found)
    check_model_names(value, found)
    images = value.get("images")
    if images is not None and not found.touches(_IMAGES):
        check_ids(images, found)
    found.raise_if_any()
    fallback = value.get("fallback")
    return ValidRequest(
        context=value["context"],
        decisions=tuple(decision for decision in decisions if decision is not None),
        model=value.get("model"),
        fallback=tuple(fallback) if isinstance(fallback, list | tuple) else fallback or "auto",
        temperature=value.get("temperature"),
        has_images=images is not None,
        store=value.get("store"),
        metadata=value.get("metadata") or {},
    )


def check_model_names(value: Mapping[str, Any], found: Violations) -> None:
    """Note names of models that are blank, in ``model`` and in ``fallback``."""
    named: list[tuple[Path, Any]] = [((*BODY, "model"), value.get("model"))]
    fallback = value.get("fallback")
    if isinstance(fallback, list | tuple):
        named += [((*BODY, "fallback", index), name) for index, name in enumerate(fallback)]
    for path, name in named:
        if isinstance(name, str) and name and not name.strip():
            found.add(path, "is blank; name a model, or leave it out.", "blank")


def read_decisions(value: Mapping[str, Any], found: Violations) -> list[Decision | None]:
    """Read the decisions of a request whose shape was looked at.

    ``None`` in the place of a decision that has something wrong in it.
    """
    items = value.get("decisions")
    if not isinstance(items, list | tuple):
        return []
    path = (*BODY, "decisions")
    places: dict[str, int] = {}
    decisions: list[Decision | None] = []
    for index, item in enumerate(items[:MAX_DECISIONS]):
        if not isinstance(item, dict):
            continue
        fields = _sound_fields(item, (*path, index), found)
        _check_id(fields.get("id"), index, places, (*path, index, "id"), found)
        decisions.append(_read_decision(fields, index, (*path, index), found))
    _check_long_names(decisions, path, found)
    return decisions


def _sound_fields(item: dict[Any, Any], path: Path, found: Violations) -> dict[str, Any]:
    """Return the fields in which nothing was found, or only something inside a field of objects.

    What holds several values of the caller's (costs, a policy) stays, so that its other parts are
    looked at too; the readers of those step over what was found already.
    """
    return {
        name: value
        for name, value in item.items()
        if not found.touches((*path, name))
        or (name in _PARTLY_READ and isinstance(value, dict) and not found.has((*path, name)))
    }


_PARTLY_READ = frozenset(("policy", "weights", "costs", "abstain"))


def _check_id(
    id_: str | None, index: int, places: dict[str, int], path: Path, found: Violations
) -> None:
    if id_ is None:
        return
    if not id_.strip():
        found.add(path, "is blank; give the decision a name.", "blank")
    elif id_ in places:
        found.add(
            path,
            f"repeats {show(id_)}, the id of decisions[{places[id_]}]; give each its own.",
            "duplicate",
        )
    else:
        places[id_] = index


def _read_decision(
    fields: dict[str, Any], index: int, path: Path, found: Violations
) -> Decision | None:
    question = fields.get("question")
    if isinstance(question, str) and not question.strip():
        found.add((*path, "question"), "is blank; ask something.", "blank")
    kind: Kind = fields.get("kind") or "single"
    outcomes = None
    # Outcomes cannot be read for a kind that is unknown, nor read again when they were refused.
    if not found.touches((*path, "kind")) and not found.touches((*path, "outcomes")):
        outcomes = read_outcomes(kind, fields.get("outcomes"), fields.get("rubric"), path, found)
    opposite = fields.get("opposite") or ""
    if opposite and kind != "binary":
        found.add(
            (*path, "opposite"), "belongs to binary decisions alone; leave it out.", "not_allowed"
        )
    elif opposite and not opposite.strip():
        found.add((*path, "opposite"), "is blank; write a question, or leave it out.", "blank")
    policy = read_policy(fields, outcomes.names if outcomes else None, path, found)
    if outcomes is None or found.touches(path):
        return None
    return Decision(fields["id"], kind, question, outcomes, policy, index, opposite)


def _check_long_names(decisions: Sequence[Decision | None], path: Path, found: Violations) -> None:
    """Hold single decisions with very long names to one list of outcomes, the first one's."""
    first: Decision | None = None
    for decision in decisions:
        if decision is None or decision.kind != "single":
            continue
        if max(map(len, decision.outcomes.names)) <= MAX_OWN_NAME_CHARACTERS:
            continue
        if first is None:
            first = decision
        elif decision.outcomes.names != first.outcomes.names:
            found.add(
                (*path, decision.index, "outcomes"),
                f"has a name over {MAX_OWN_NAME_CHARACTERS} characters and is not the list of "
                f"decisions[{first.index}], which has one too; give both the same list, or "
                "shorten the names and put the text in descriptions.",
                "too_long",
            )
