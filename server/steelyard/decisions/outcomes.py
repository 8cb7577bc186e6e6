"""Reading the outcomes of a decision from every form that callers may send.

=======  ==============================================  ======================  =================
kind     ``outcomes``                                    names                   descriptions
=======  ==============================================  ======================  =================
single   array, or object of name to description         entries, or keys        the values
binary   left out, object of ``yes`` and ``no`` (either  ``yes``, ``no``         the values
         or both), or array of both
ordinal  array of levels, or left out                    entries, or ``"0"``...  the rubric
=======  ==============================================  ======================  =================

An entry that is not text is named by its JSON text. There are 2 to 255 outcomes, with names that
are distinct, not blank and not ``abstain``, which is an action's name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steelyard.decisions.kinds import ABSTAIN, BINARY_NAMES, Outcomes
from steelyard.decisions.rendering import render_value
from steelyard.decisions.wire import Kind
from steelyard.wire.limits import MAX_OUTCOMES, MIN_OUTCOMES
from steelyard.wire.violations import Path, Violations, show


def read_outcomes(
    kind: Kind, outcomes: Any, rubric: Sequence[Any] | None, path: Path, found: Violations
) -> Outcomes | None:
    """Read the outcomes of one decision.

    ``None`` when they could not be read; then ``found`` says why.
    """
    if kind == "ordinal":
        return _read_ordinal(outcomes, rubric, path, found)
    if rubric is not None:
        found.add(
            (*path, "rubric"),
            f"is given for a {kind} decision; describe its outcomes in outcomes instead, or make "
            "the kind ordinal.",
            "refused",
        )
    if kind == "binary":
        return _read_binary(outcomes, (*path, "outcomes"), found)
    return _read_single(outcomes, (*path, "outcomes"), found)


def _read_single(outcomes: Any, path: Path, found: Violations) -> Outcomes | None:
    if isinstance(outcomes, dict):
        names = tuple(name for name in outcomes if isinstance(name, str))
        descriptions = tuple(outcomes[name] for name in names)
        steps: Sequence[str | int] = names
    elif isinstance(outcomes, list | tuple):
        if not _has_allowed_count(len(outcomes), "outcomes", path, found):
            return None
        names = tuple(render_value(entry) for entry in outcomes)
        descriptions = (None,) * len(names)
        steps = range(len(names))
    else:
        _refuse_form(
            outcomes, "an array of outcomes, or an object from name to description", path, found
        )
        return None
    if not _has_allowed_count(len(names), "outcomes", path, found):
        return None
    return Outcomes(names, descriptions) if _check_names(names, steps, path, found) else None


def _read_binary(outcomes: Any, path: Path, found: Violations) -> Outcomes | None:
    if outcomes is None:
        return Outcomes(BINARY_NAMES, (None, None))
    if isinstance(outcomes, list | tuple):
        if len(outcomes) == len(BINARY_NAMES) and all(name in outcomes for name in BINARY_NAMES):
            return Outcomes(BINARY_NAMES, (None, None))
        found.add(
            path,
            'names other outcomes than the "yes" and "no" of a binary decision; leave it out, or '
            "make the kind single.",
            "not_allowed",
        )
        return None
    if not isinstance(outcomes, dict):
        _refuse_form(outcomes, 'nothing, or an object with "yes" and "no"', path, found)
        return None
    unknown = [name for name in outcomes if name not in BINARY_NAMES and isinstance(name, str)]
    for name in unknown:
        found.add(
            (*path, name),
            'is no outcome of a binary decision; describe "yes" and "no" alone, or make the kind '
            "single.",
            "not_allowed",
        )
    if unknown:
        return None
    return Outcomes(BINARY_NAMES, tuple(outcomes.get(name) for name in BINARY_NAMES))


def _read_ordinal(
    outcomes: Any, rubric: Sequence[Any] | None, path: Path, found: Violations
) -> Outcomes | None:
    rubric_path = (*path, "rubric")
    if outcomes is None and rubric is not None:
        if not _has_allowed_count(len(rubric), "levels", rubric_path, found):
            return None
        return Outcomes(tuple(str(level) for level in range(len(rubric))), tuple(rubric))
    names = None if outcomes is None else _read_levels(outcomes, (*path, "outcomes"), found)
    if rubric is None:
        # One that is there and of the wrong type is noted already.
        if not found.touches(rubric_path):
            found.add(
                rubric_path,
                "is missing; an ordinal decision needs one description per level.",
                "missing",
            )
        return None
    if names is not None and len(rubric) != len(names):
        found.add(
            rubric_path,
            f"has {len(rubric)} entries for {len(names)} levels; give one per level.",
            "length_mismatch",
        )
        return None
    return None if names is None else Outcomes(names, tuple(rubric))


def _read_levels(outcomes: Any, path: Path, found: Violations) -> tuple[str, ...] | None:
    if not isinstance(outcomes, list | tuple):
        _refuse_form(outcomes, "an array of levels in order (describe them in rubric)", path, found)
        return None
    if not _has_allowed_count(len(outcomes), "levels", path, found):
        return None
    names = tuple(render_value(entry) for entry in outcomes)
    return names if _check_names(names, range(len(names)), path, found) else None


def _check_names(
    names: Sequence[str], steps: Sequence[str | int], path: Path, found: Violations
) -> bool:
    """Note names that are blank, reserved or repeated; return whether there were none."""
    places: dict[str, str | int] = {}
    are_good = True
    for name, step in zip(names, steps, strict=True):
        if not name.strip():
            predicate, type_ = "is a blank outcome; give it a name.", "blank"
        elif name == ABSTAIN:
            predicate, type_ = (
                (
                    f"is named {ABSTAIN!r}, which is the action of an answer sent to a person; name "
                    "the outcome otherwise."
                ),
                "reserved",
            )
        elif name in places:
            predicate, type_ = (
                (f"repeats the outcome {show(name)} of place {places[name]}; name each once."),
                "duplicate",
            )
        else:
            places[name] = step
            continue
        found.add((*path, step), predicate, type_)
        are_good = False
    return are_good


def _has_allowed_count(n_outcomes: int, noun: str, path: Path, found: Violations) -> bool:
    if MIN_OUTCOMES <= n_outcomes <= MAX_OUTCOMES:
        return True
    found.add(
        path,
        f"has {n_outcomes} {noun}; give {MIN_OUTCOMES} to {MAX_OUTCOMES}.",
        "too_short" if n_outcomes < MIN_OUTCOMES else "too_long",
    )
    return False


def _refuse_form(outcomes: Any, wanted: str, path: Path, found: Violations) -> None:
    if outcomes is None:
        found.add(path, f"is missing; give {wanted}.", "missing")
    else:
        found.add(path, f"is {show(outcomes)}; give {wanted}.", "wrong_type")
