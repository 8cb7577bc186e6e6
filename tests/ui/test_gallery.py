"""Pictures of every page, in both themes, on a desk and on a phone.

Drawn where STEELYARD_GALLERY is set to a folder; ``scripts/pictures`` sets it to that of the documents.
"""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from playwright.sync_api import expect

from steelyard_workbench.frame.navigation import ENTRIES
from support.browser.browsing import visit

GALLERY = os.environ.get("STEELYARD_GALLERY")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1500),
    pytest.mark.skipif(not GALLERY, reason="draws where STEELYARD_GALLERY is a folder"),
]
THEMES, WIDTHS = ("light", "dark"), (1440, 390)
#: Whose answers stand on Live, and what came true of each.
TICKETS = (
    ("I was charged twice for order 118, please send one payment back.", "billing"),
    ("Where can I see my parcel? The link in the mail is dead.", "shipping"),
    ("Hola, no puedo entrar en mi cuenta desde ayer.", "account"),
    ("The zip of the jacket broke on the second day. What now?", "returns"),
)
TEAM = {
    "id": "team",
    "question": "Which team should own this ticket?",
    "outcomes": {
        "billing": "charges, invoices and refunds",
        "shipping": "where a parcel is",
        "account": "signing in and the profile",
        "returns": "goods that are broken or unwanted",
    },
}


@pytest.fixture(scope="module")
def server():
    """A server of the model that ships, with the rows and answers that pages show."""
    import steelyard

    with steelyard.embed() as running:
        client = running.client
        rows = [
            {"context": f"{text} ({n})", "decisions": [TEAM], "targets": {"team": team}}
            for n in range(10)
            for text, team in TICKETS
        ]
        client.datasets.create("support_triage", rows)
        for text, team in TICKETS * 10:
            answer = client.decide(text, [{**TEAM, "policy": {"abstain_below": 0.5}}], store=True)
            client.feedback(answer.id, {"team": team}, by="person")
        yield running


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("theme", THEMES)
def test_every_page_is_drawn(quiet_page, server, theme, width):
    from PIL import Image

    page, folder = quiet_page, Path(GALLERY)
    folder.mkdir(parents=True, exist_ok=True)
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=theme)
    [dataset] = server.client.datasets.list().data
    for entry in ENTRIES:
        if entry.needs_sign_in:
            continue
        of = (
            f"&dataset={dataset.id}" if entry.section == "data" and entry.slug != "datasets" else ""
        )
        visit(page, f"page={entry.slug}{of}&theme={theme if theme == 'dark' else ''}")
        expect(page.locator(".skeleton:visible")).to_have_count(0)
        page.wait_for_timeout(700)  # figures are drawn after the page
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        drawn = Image.open(io.BytesIO(page.screenshot()))
        drawn.quantize(256).save(folder / f"{entry.slug}-{theme}-{width}.png", optimize=True)
