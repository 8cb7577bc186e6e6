"""Findings of axe-core on a page: there may only be fewer.

Faults of panel-material-ui's frame and Tabulator are mended in the browser by ``frame_roles`` and
``table_keys``, so that nothing is listed; a finding that is Panel's own would be, with its count.
"""

from __future__ import annotations

import re

_LOOKS = 5
#: Rule to the most elements of a page that may break it, with whose they are.
KNOWN: dict[str, int] = {}


def commands_on(page):
    """Return the visible texts with what somebody would type into a shell: none but under *Details*."""
    from steelyard.cli.main import COMMANDS

    names = "|".join(COMMANDS)
    command = re.compile(rf"pip install|STEELYARD_|\b(curl|docker) |\bsteelyard ({names})\b")
    return page.get_by_text(command).filter(visible=True).all_inner_texts()


def stays_worse(page):
    """Return the findings that axe still has when it looks again: a page is drawn in parts."""
    for _ in range(_LOOKS):
        found = worse_than_known(page)
        if not found:
            break
        page.wait_for_timeout(1_000)
    return found


def worse_than_known(page):
    """Return the findings of axe beyond ``KNOWN``."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return {
        violation["id"]: [
            f"{node['html'][:160]} {node.get('failureSummary', '')[-200:]}"
            for node in violation["nodes"]
        ]
        for violation in found
        if len(violation["nodes"]) > KNOWN.get(violation["id"], 0)
    }
