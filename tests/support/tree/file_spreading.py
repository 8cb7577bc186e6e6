"""How the tests are spread over the processes of pytest-xdist: the longest first, one browser.

Files stay whole, since their tests share fixtures. All files of a browser go to one process, because
two browsers beside each other on two cores make each other late; notebooks share nothing and are taken
one by one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

_HERE = Path(__file__).parents[2]
_BROWSER, _NOTEBOOKS = "ui/", "notebooks/"
#: What takes longest, by the beginnings of paths. Started first, it is not what all wait for last;
#: ``--no-loadscope-reorder`` keeps it there.
LONGEST = (
    _BROWSER,
    _NOTEBOOKS,
    "property/test_scorer.py",
    "trainer/",
    "jobs/",
    "conformance/",
    "scoring/",
    "clients/",
    "faults/",
    "training/",
    "triton_server/",
    "workbench/",
    "cli/",
    "families/",
    "decision_log/",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first."""
    items.sort(key=lambda item: _rank(item.path))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Return the scheduler of ``--dist loadfile``; others are xdist's own."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Spreading(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.split("::", 1)[0]
            if f"tests/{_BROWSER}" in file:
                return f"tests/{_BROWSER}"
            return nodeid if f"tests/{_NOTEBOOKS}" in file else file

    return Spreading(config, log)


def _rank(path: Path) -> int:
    if not path.is_relative_to(_HERE):
        return len(LONGEST)
    name = path.relative_to(_HERE).as_posix()
    ranks = (n for n, start in enumerate(LONGEST) if name.startswith(start))
    return next(ranks, len(LONGEST))
