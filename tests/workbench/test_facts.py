"""Static tables: every text escaped, and long ids broken rather than wider than their panel."""

from __future__ import annotations

import pytest

pytest.importorskip("panel", reason="needs the workbench extra")

from steelyard_workbench.kit.views import facts, table


def test_texts_are_escaped():
    shown = table(("a <b>", "n"), [("<script>", "1")], label='say "hi"', numbers=(1,)).object
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
    assert 'aria-label="say &quot;hi&quot;"' in shown
    assert "<i>" not in facts({"<i>": "<i>"}).object


@pytest.mark.parametrize(
    ("cell", "breaks"),
    [("ftj_0123456789abcdef0123456789", True), ("a sentence of many short words, whole", False)],
)
def test_long_words_break_and_short_ones_do_not(cell, breaks):
    shown = table(("job",), [(cell,)], label="jobs").object
    assert ('class="long"' in shown) is breaks
