"""Rules about the context, reported on the first decision."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from steelyard.decisions.lint.service import lint_request
from support.decisions.linting import CONTEXT, binary, ordinal, rules_of

GERMAN = "Ich möchte bitte mein Geld zurück, die Ware ist kaputt."

#: Context by the rule that it breaks, and one that nearly does.
CASES = {
    "unread_language": (GERMAN, "Where is order 4411 for Müller, Hauptstraße 12, Berlin?"),
    "quoted_mail": (f"{CONTEXT}\n> What did you order?\n> When?", f"{CONTEXT}\n> One marked line."),
    "markup": ({"body": f"<p>{CONTEXT}</p>"}, f"{CONTEXT} a < b and <b> is bold"),
    "long_context": (f"{CONTEXT} " * 7, f"{CONTEXT} " * 6),
}


@pytest.mark.parametrize("rule", CASES)
def test_fires_alone_on_the_first_decision_and_a_near_miss_is_silent(rule):
    if rule == "unread_language" and not find_spec("pycld2"):
        pytest.skip("pycld2 is not built for this processor")
    decisions = [{"id": f"d{place}", **one} for place, one in enumerate((binary(), ordinal()))]
    broken, near = (
        lint_request({"context": context, "decisions": decisions}).warnings
        for context in CASES[rule]
    )
    assert [(one.decision, one.rule) for one in broken] == [("d0", rule)]
    assert near == []


def test_every_rule_of_the_theme_has_a_case():
    assert set(CASES) == rules_of("contexts")
