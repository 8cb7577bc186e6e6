"""jevcompat 0.1.1, the public conformance suite of servers that speak System One."""

from __future__ import annotations

import pytest
from jevcompat.runner import Report, run

from support.servers.live_server import LiveServer
from support.tree.repository import ROOT

#: The badge of README.md, which shows what a run finds.
BADGE = """\
<svg xmlns="http://www.w3.org/2000/svg" width="266" height="20" role="img">
  <title>{title}</title>
  <rect width="266" height="20" rx="3" fill="#555"/>
  <path d="M76 0h187a3 3 0 0 1 3 3v14a3 3 0 0 1-3 3H76z" fill="#00796b"/>
  <g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">
    <text x="8" y="14">jevcompat</text>
    <text x="84" y="14">{counts}</text>
  </g>
</svg>
"""

#: Unknown fields are refused by name here, since a misspelled one would be lost in silence.
NOT_TAKEN = ["request.unknown-fields"]


@pytest.fixture(scope="module")
def report(running_server: LiveServer) -> Report:
    return run(running_server.url)


def test_every_requirement_but_one_recommendation_holds(report: Report):
    assert report.conformant
    failed = {result.id: result.findings for result in report.results if result.status == "fail"}
    assert list(failed) == NOT_TAKEN, failed


def test_the_badge_has_the_result_of_the_run(report: Report):
    levels = report.summary()
    counts = ", ".join(
        f"{levels[level]['passed']} of {levels[level]['tested']} {level}"
        for level in ("MUST", "SHOULD")
    )
    title = f"jevcompat {report.tool_version}: {counts}"
    drawn = (ROOT / "docs/pictures/jevcompat.svg").read_text(encoding="utf-8")
    assert drawn == BADGE.format(title=title, counts=counts)
    assert f"[![{title}](docs/pictures/jevcompat.svg)]" in (ROOT / "README.md").read_text()
