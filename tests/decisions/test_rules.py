"""Rules over fields and probabilities: exact, safe, and said in words."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.decisions.rules import Rulebook
from steelyard.decisions.rules_wire import MAX_CONDITION, MAX_RULES
from steelyard.decisions.wire import DecisionResult
from steelyard.errors import InvalidRequestError
from steelyard.named.content import rulebook_of
from steelyard.named.rule_rows import values_of

DESK = {"id": "desk", "question": "What is wanted?", "outcomes": ["refund", "late payment"]}
TEAM = {"id": "team", "question": "Who is it for?", "outcomes": ["billing", "shipping"]}
FIELDS: dict[str, Any] = {
    "amount": {"type": "decimal"},
    "country": {"type": "text", "optional": True},
    "since": {"type": "date", "optional": True},
    "vip": {"type": "boolean", "optional": True},
    "days": {"type": "integer", "optional": True},
}
GIVEN: dict[str, Any] = {"amount": "49.90", "country": "AT", "since": "2026-10-01", "days": 3}


def book_of(*conditions: str, decisions: Any = (DESK,), fields: Any = FIELDS) -> Rulebook:
    rules = [{"when": when, "action": f"a{n}"} for n, when in enumerate(conditions, start=1)]
    content = {"decisions": list(decisions), "fields": fields}
    book = rulebook_of(content | {"rules": rules, "otherwise": "person"})
    assert book is not None
    return book


def answered(p: float, action: str = "refund") -> dict[str, DecisionResult]:
    probabilities = {"refund": p, "late payment": 1 - p}
    result = DecisionResult(
        kind="single", probabilities=probabilities, top="refund", p_top=p, action=action
    )
    return {"desk": result}


def problems_of(error: InvalidRequestError) -> dict[str, str]:
    return {".".join(map(str, each.path[1:])): each.type for each in error.violations}


def holds(condition: str, p: float = 0.9, **given: Any) -> bool:
    result = book_of(condition).decide(answered(p), GIVEN | given)
    assert result is not None
    return result.number == 1


@pytest.mark.parametrize(
    ("condition", "expected", "words"),
    [
        ("p.refund >= .9 and amount < 50", True, "refund at least 0.9 and amount below 50"),
        ("p.refund > .9", False, "refund above 0.9"),
        ('p["late payment"] <= .1', True, '"late payment" at most 0.1'),
        ("10 <= amount <= 49.9", True, "amount between 10 and 49.9"),
        ("10 < amount < 49.9", False, "amount above 10 and amount below 49.9"),
        ('country in ["AT", "DE", "CH"]', True, "country is AT, DE or CH"),
        ('country not in ["AT"]', False, "country is not AT"),
        (
            'since >= "2026-10-01" and days != -3',
            True,
            "since on or after 2026-10-01 and days is not -3",
        ),
        ('"2026-10-01" < since', False, "since after 2026-10-01"),
        (
            '(amount < 9 or top == "refund") and not days > 5',
            True,
            "(amount below 9 or top is refund) and not (days above 5)",
        ),
        (
            'action == "abstain" or country == null',
            False,
            "action is abstain or country is missing",
        ),
        ("country is not null", True, "country is given"),
    ],
)
def test_conditions_hold_and_are_said_in_words(condition: str, expected: bool, words: str) -> None:
    assert holds(condition, p=0.9) is expected
    assert book_of(condition).in_words() == [f"a1 where {words}", "person otherwise"]


def test_the_first_rule_that_holds_acts() -> None:
    book = book_of("amount < 10", "amount < 50", "amount < 90")
    result = book.decide(answered(0.9), GIVEN)
    assert result is not None
    assert (result.action, result.number, result.why) == ("a2", 2, "amount below 50")
    result = book.decide(answered(0.9), {"amount": 90})
    assert result is not None
    assert (result.action, result.number, result.why) == (
        "person",
        None,
        "none of the 3 rules holds",
    )


def test_several_questions_are_named() -> None:
    book = book_of(
        'p.desk.refund > .5 and top.team == "billing"', decisions=(DESK, TEAM), fields=None
    )
    results = answered(0.9) | {
        "team": DecisionResult(
            kind="single", probabilities={}, top="billing", p_top=0.9, action="billing"
        )
    }
    result = book.decide(results, {})
    assert result is not None
    assert result.why == "refund (desk) above 0.5 and top of team is billing"
    with pytest.raises(InvalidRequestError, match=r"names p\.refund.*use one of p\.desk, p\.team"):
        book_of("p.refund > .5", decisions=(DESK, TEAM))


@pytest.mark.parametrize("condition", ["vip", "not vip", "vip == true", "vip != true"])
def test_no_rule_acts_by_a_field_that_is_missing(condition: str) -> None:
    assert not holds(condition)
    assert not holds(f"not ({condition}) and amount < 50", vip=None)
    assert holds(f"{condition} or amount < 50")
    assert holds(condition, vip=True) is not holds(condition, vip=False)


@given(st.decimals(-(10**9), 10**9, places=4), st.decimals(-(10**9), 10**9, places=4))
def test_decimals_are_compared_exactly(left: Any, right: Any) -> None:
    assert holds(f"amount < {right}", amount=str(left)) is (left < right)
    assert holds(f"amount == {left}", amount=float(left))
    assert holds(f"amount == {left}", amount=f"{left}0")


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("amount >", "cannot be read at column 9; it ends too early; a name, a number or a text"),
        ("amount = 5", "cannot be read at column 8; write == to compare"),
        ("vip && amount < 5", "cannot be read at column 6; write and"),
        ("amount between 1 and 5", "cannot be read at column 8; write 10 <= amount <= 50"),
        ("  amnt > 5", "names amnt, which is not there, at column 3; use one of amount, country"),
        ('"é" == land', "names land, which is not there, at column 8; use one of amount"),
        ("p.refnd > .9", 'names p.refnd, .* column 1; use one of p.refund, p\\["late payment"\\]'),
        ("p.refund", "has refund .a number. for a condition at column 1; compare it"),
        ('amount > "x"', "compares amount .a number. with x .a text. at column 10; give a number"),
        ("vip == 1", "compares vip .a boolean. with 1 .a number. at column 8; give a boolean"),
        ('country > "A"', "orders country, a text, at column 1; use == or in"),
        ('country in "AT"', "has no list after in at column 12"),
        ('country in ["AT", vip]', "compares country .a text. with vip .a boolean. at column 19"),
        ('top == "refnd"', 'has "refnd" at column 8; top may be refund, late payment'),
        ('since > "1.10.2026"', 'has "1.10.2026" at column 9; write a date, as in 2026-10-01'),
        (
            "amount is null",
            "compares amount with null at column 1; only an optional field may be missing",
        ),
        ("1 < 2", "compares two constants at column 1"),
        ("amount < 1e99", "has 1e99 at column 10; write a number such as 120.5"),
        ("country == '\\d'", "has a backslash at column 13"),
    ],
)
def test_a_condition_that_cannot_be_used_is_refused_with_its_column(
    condition: str, message: str
) -> None:
    with pytest.raises(InvalidRequestError, match=rf"rules\[0\]\.when {message}"):
        book_of(condition)


@pytest.mark.parametrize(
    "condition",
    [
        '__import__("os").system("x") == 0',
        "(lambda: amount)() < 5",
        "[each for each in p] == 1",
        "amount.__class__ == 1",
        "p.__class__ == 1",
        "10**10**10 > amount",
        "amount + 1 > 5",
        "country == f'{amount}'",
        "(amount := 5) > 1",
        "amount if vip else days",
        "*amount",
        "amount < 5j",
        "country == b'AT'",
        "vip, vip",
        "not " * 120 + "vip",
        "-" * 400 + "1 < amount",
        "(" * 240 + "vip" + ")" * 240,
        "p" + ".p" * 200 + " > 1",
    ],
)
def test_nothing_else_of_python_is_read(condition: str) -> None:
    with pytest.raises(InvalidRequestError, match=r"rules\[0\]\.when"):
        book_of(condition)


@given(st.text(alphabet="amountpvic.<>=!&|()[]\"'0123456789 ,é-+*/\\:@#", max_size=60))
def test_any_text_is_read_or_refused(condition: str) -> None:
    try:
        book = book_of(condition)
    except InvalidRequestError:
        return
    assert book.decide(answered(0.9), GIVEN) is not None


def test_rules_have_bounds() -> None:
    for conditions in (["vip"] * (MAX_RULES + 1), ["vip or " * MAX_CONDITION + "vip"]):
        with pytest.raises(InvalidRequestError):
            book_of(*conditions)
    longest = ("amount < 9 or " * MAX_CONDITION)[: MAX_CONDITION - 14] + "vip"
    assert book_of(*["not vip"] * MAX_RULES).decide(answered(0.9), GIVEN | {"vip": True})
    with pytest.raises(InvalidRequestError, match="cannot be read"):
        book_of(longest + "(")


def test_values_of_fields_are_checked_against_their_types() -> None:
    book = book_of("vip")
    wrong = {
        "amount": "1e5",
        "country": 7,
        "since": "2026-13-01",
        "vip": 1,
        "days": 2.5,
        "colour": 1,
    }
    with pytest.raises(InvalidRequestError) as caught:
        book.check(wrong, "desk@1")
    assert problems_of(caught.value) == {
        "fields.amount": "wrong_type",
        "fields.country": "wrong_type",
        "fields.since": "wrong_type",
        "fields.vip": "wrong_type",
        "fields.days": "wrong_type",
        "fields.colour": "unknown_field",
    }
    with pytest.raises(
        InvalidRequestError, match=r"fields\.amount is missing; desk@1 needs a number"
    ):
        book.check({"amount": None}, "desk@1")
    book.check({"amount": 5, "vip": None}, "desk@1")
    with pytest.raises(InvalidRequestError, match=r"fields\.x is no field of desk@1; leave it out"):
        Rulebook({}).check({"x": 1}, "desk@1")


@pytest.mark.parametrize(
    ("content", "place", "type_"),
    [
        ({"rules": [{"when": "vip", "action": "x"}]}, "otherwise", "missing"),
        ({"otherwise": "person"}, "otherwise", "refused"),
        ({"fields": {"p": {"type": "text"}}}, "fields.p", "reserved"),
        ({"fields": {"Amount": {"type": "text"}}}, "fields.Amount", "wrong_form"),
        ({"fields": {"amount": {"type": "money"}}}, "fields.amount.type", "not_allowed"),
    ],
)
def test_a_content_with_something_wrong_is_refused(content: Any, place: str, type_: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        rulebook_of({"decisions": [DESK], "fields": FIELDS} | content)
    assert problems_of(caught.value) == {place: type_}


def test_the_worked_example_of_the_guide() -> None:
    text = (Path(__file__).parents[2] / "docs" / "applications" / "rules.md").read_text()
    content = json.loads(text.partition("-d '")[2].partition("'\n")[0])
    del content["name"]
    book = rulebook_of(content)
    assert book is not None
    assert "\n".join(book.in_words()) in text
    lines = text.partition("| p.refund |")[2].partition("\n\n")[0].splitlines()[2:]
    counts: Counter[str] = Counter()
    for line in lines:
        refund, exchange, *cells, number, action = (
            cell.strip() for cell in line.strip("|").split("|")
        )
        given = values_of(book, dict(zip(("amount", "country", "bought"), cells, strict=True)))
        book.check(given, "refund_desk@1")
        probabilities = {"refund": float(refund), "exchange": float(exchange)}
        result = DecisionResult(
            kind="single", probabilities=probabilities, top="refund", p_top=0.9, action="refund"
        )
        ruled = book.decide({"desk": result}, given)
        assert ruled is not None
        assert (str(ruled.number or ""), ruled.action) == (number, action), line
        counts[number] += 1
    assert counts == {"1": 1, "2": 2, "3": 1, "": 3}
