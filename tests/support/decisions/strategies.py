"""Hypothesis strategies: valid requests of every form, and values that belong in none."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

#: For properties that answer whole requests. Times are never asserted.
few = settings(max_examples=60, deadline=None)

texts = st.text(max_size=40)
names = st.text(min_size=1, max_size=12).filter(
    lambda name: name.strip() and name != "abstain" and "\0" not in name
)
plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts
#: Any JSON value of modest size.
json_values = st.recursive(
    plain.filter(lambda value: not isinstance(value, float) or abs(value) < 1e300),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
#: A context or a question that is no text.
json_containers = st.lists(json_values, max_size=3) | st.dictionaries(
    texts, json_values, max_size=3
)
descriptions = st.none() | texts | json_containers
costs = st.floats(-1e6, 1e6)
temperatures = st.floats(0.2, 5)
#: What JSON has no form for, and Python does.
foreign_values = st.sampled_from(
    [
        float("nan"),
        float("inf"),
        -float("inf"),
        10**400,
        b"bytes",
        {1, 2},
        object(),
        1j,
        {1: "a"},
        {None: 1},
        {("a",): 2},
        "\ud800",
        {"\udfff": 1},
        (1, float("nan")),
        range(3),
        Ellipsis,
    ]
)


def unique_names(min_size: int = 2, max_size: int = 6) -> st.SearchStrategy[list[str]]:
    """Names of outcomes."""
    return st.lists(names, min_size=min_size, max_size=max_size, unique=True)


@st.composite
def outcome_fields(draw: st.DrawFn, kind: str) -> tuple[dict[str, Any], list[str]]:
    """The fields that say a decision's outcomes, and the names they should be read as."""
    if kind == "binary":
        described = draw(st.dictionaries(st.sampled_from(["yes", "no"]), descriptions))
        form = draw(st.sampled_from([..., None, ["yes", "no"], ["no", "yes"], described]))
        return ({} if form is ... else {"outcomes": form}), ["yes", "no"]
    if kind == "ordinal":
        rubric = draw(st.lists(descriptions, min_size=2, max_size=6))
        if draw(st.booleans()):
            return {"rubric": rubric}, [str(level) for level in range(len(rubric))]
        levels = draw(unique_names(len(rubric), len(rubric)))
        return {"rubric": rubric, "outcomes": levels}, levels
    listed = draw(unique_names())
    if draw(st.booleans()):
        return {"outcomes": listed}, listed
    return {"outcomes": {name: draw(descriptions) for name in listed}}, listed


@st.composite
def policy_fields(draw: st.DrawFn, listed: list[str]) -> dict[str, Any]:
    """No policy, or one in either spelling."""
    actions = draw(unique_names(1, 4))
    matrix = {action: {name: draw(costs) for name in listed} for action in actions}
    threshold = draw(st.floats(0, 1))
    flat = {name: draw(costs) for name in listed}
    weights = {name: draw(st.floats(1e-3, 1e3)) for name in listed}
    return draw(
        st.sampled_from(
            [
                {},
                {"policy": None},
                {"policy": {"action_costs": matrix}},
                {"policy": {"action_costs": matrix, "abstain_below": threshold}},
                {"policy": {"abstain_below": threshold}},
                {"costs": matrix, "abstain": {"cost": 1.5}},
                {"costs": flat, "weights": weights},
                {"weights": weights, "abstain": {"min_probability": threshold, "cost": 0.4}},
            ]
        )
    )


@st.composite
def decisions(draw: st.DrawFn, id_: str) -> dict[str, Any]:
    """A valid decision."""
    kind = draw(st.sampled_from(["single", "binary", "ordinal"]))
    fields, listed = draw(outcome_fields(kind))
    question = draw(texts.filter(str.strip) | json_containers)
    decision = {"id": id_, "question": question, **fields, **draw(policy_fields(listed))}
    if kind != "single" or draw(st.booleans()):
        decision["kind"] = kind
    return decision


@st.composite
def requests(draw: st.DrawFn, max_decisions: int = 3) -> dict[str, Any]:
    """A valid request, for any base model."""
    ids = draw(st.lists(names, min_size=1, max_size=max_decisions, unique=True))
    request: dict[str, Any] = {
        "context": draw(texts | json_containers),
        "decisions": [draw(decisions(id_)) for id_ in ids],
    }
    optional = {
        "temperature": st.none() | temperatures,
        "fallback": st.sampled_from([None, "auto", "none", ["a", "b"]]),
        "independent": st.none() | st.booleans(),
        "store": st.none() | st.booleans(),
        "metadata": st.none() | st.dictionaries(st.text(max_size=9), plain_metadata, max_size=4),
        "model": st.none(),
    }
    for name, values in optional.items():
        if draw(st.booleans()):
            request[name] = draw(values)
    return request


plain_metadata = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | costs | texts


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value, the value itself first."""
    found = [path]
    items = value.items() if isinstance(value, dict) else ()
    if isinstance(value, list):
        items = enumerate(value)
    for step, inner in items:
        found += places(inner, (*path, step))
    return found


@st.composite
def mutated(draw: st.DrawFn, replacements: st.SearchStrategy[Any]) -> Any:
    """A valid request in which one place was replaced, removed or given a new neighbour."""
    request = draw(requests())
    place = draw(st.sampled_from(places(request)))
    if not place:
        return draw(replacements)
    holder: Any = request
    for step in place[:-1]:
        holder = holder[step]
    action = draw(st.sampled_from(["replace", "remove", "add"]))
    if action == "replace":
        holder[place[-1]] = draw(replacements)
    elif action == "remove":
        del holder[place[-1]]
    elif isinstance(holder, list):
        holder.insert(place[-1], draw(replacements))
    else:
        holder[draw(texts)] = draw(replacements)
    return request
