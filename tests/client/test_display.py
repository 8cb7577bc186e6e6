"""Answers in a notebook: their form, and that no name in them becomes markup."""

from __future__ import annotations

from html.parser import HTMLParser

import msgspec
import pytest

from steelyard.client import DecideAnswer, LintAnswer
from steelyard.client.display import SHOWN_OUTCOMES
from support.servers.scripted_server import DECIDE_ANSWER

HOSTILE = '<img src=x onerror="alert(1)">&"\''


class Page(HTMLParser):
    """Collects tags and text, and checks that tags close in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        assert not any(name.startswith("on") or name in {"src", "href"} for name, _ in attrs)
        self.tags.append(tag)
        self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        self.text += data


def decide_answer(**decision: object) -> DecideAnswer:
    [(name, result)] = DECIDE_ANSWER["decisions"].items()
    decisions = {decision.pop("name", name): {**result, **decision}}
    return msgspec.convert({**DECIDE_ANSWER, "decisions": decisions}, DecideAnswer)


def test_an_answer_is_a_table_with_its_action():
    page = Page(decide_answer()._repr_html_())
    assert page.tags.count("tr") == 3
    for text in ("refund (binary)", "yes", "0.7500", "action: yes", "7 input tokens", "1.5 ms"):
        assert text in page.text
    rule = {"action": "refund", "number": 1, "why": "amount below 50"}
    ruled = msgspec.convert({**DECIDE_ANSWER, "rule": rule}, DecideAnswer)
    assert "refund: amount below 50" in Page(ruled._repr_html_()).text


def test_bars_are_as_wide_as_the_probabilities():
    html = decide_answer()._repr_html_()
    assert "width:75.0%" in html
    assert "width:25.0%" in html


def test_names_are_text_and_never_markup():
    probabilities = {HOSTILE: 0.6, "</td><script>x</script>": 0.4}
    answer = decide_answer(
        name=HOSTILE, kind="single", probabilities=probabilities, top=HOSTILE, action=HOSTILE
    )
    page = Page(answer._repr_html_())
    assert {"img", "script"}.isdisjoint(page.tags)
    assert page.text.count(HOSTILE) == 3


def test_many_outcomes_are_shortened_and_levels_shown():
    probabilities = {str(level): 1 / 40 for level in range(40)}
    answer = decide_answer(
        kind="ordinal", probabilities=probabilities, top="0", action="0", expected_level=19.5
    )
    page = Page(answer._repr_html_())
    assert page.tags.count("tr") == SHOWN_OUTCOMES + 1
    assert "28 less likely outcomes" in page.text
    assert "expected level: 19.500" in page.text


@pytest.mark.parametrize("probability", [float("nan"), -1.0, 7.0])
def test_a_bar_never_leaves_its_track(probability):
    html = decide_answer(probabilities={"yes": probability, "no": 0.25})._repr_html_()
    Page(html)
    assert "width:700" not in html
    assert "width:-" not in html


def test_findings_are_a_table():
    finding = {"decision": HOSTILE, "rule": "negation", "severity": "warning", "message": HOSTILE}
    page = Page(msgspec.convert({"warnings": [finding]}, LintAnswer)._repr_html_())
    assert page.tags.count("td") == 4
    assert page.text.count(HOSTILE) == 2
    assert "Nothing found." in LintAnswer(warnings=[])._repr_html_()
