"""The components of other frameworks that the documents show, where the framework is installed."""

from __future__ import annotations

import re
from typing import Any

import pytest

from support.repository import ROOT

TEXT = "I was charged twice."


def run_shown(package: str) -> dict[str, Any]:
    """Run the block of a framework's component; give the names that it makes."""
    pytest.importorskip(package, reason=f"needs {package}, which no extra has")
    page = (ROOT / "docs/applications/other-clients.md").read_text(encoding="utf-8")
    block = re.search(rf'```text title="{re.escape(package)}"\n(.*?)```', page, re.DOTALL)
    assert block is not None
    names: dict[str, Any] = {}
    exec(block[1], names)
    return names


def test_a_component_of_haystack_decides():
    answer = run_shown("haystack")["Decide"]().run(text=TEXT)
    assert answer["action"] in answer["probabilities"]


def test_a_selector_of_llama_index_chooses():
    selector = run_shown("llama_index.core")["DecisionSelector"]()
    [chosen] = selector.select(["where a parcel is", "charges and refunds"], TEXT).selections
    assert chosen.index in {0, 1}
