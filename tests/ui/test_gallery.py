"""Pictures of every page, in both themes, on a desk and on a phone.

Drawn where STEELYARD_GALLERY is a folder; ``scripts/pictures`` makes it that of the documents.
"""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from playwright.sync_api import expect

from steelyard.cli.samples import SAMPLES, sample_file
from steelyard_workbench.frame.navigation import ENTRIES
from support.browser.browsing import visit

GALLERY = os.environ.get("STEELYARD_GALLERY")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1500),
    pytest.mark.skipif(not GALLERY, reason="draws where STEELYARD_GALLERY is a folder"),
]
#: At a page until two looks at it are alike.
_LOOKS = 20
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
    """A server of the model that ships, with the rows, answers, models and decisions that pages show."""
    import steelyard

    with steelyard.embed() as running:
        client = running.client
        dataset = client.datasets.create(SAMPLES[0], sample_file(SAMPLES[0]))
        training = client.families.create("triage", dataset.id)
        client.evaluations.create(dataset.id, ["steelyard-base-2"])
        client.maps.create(dataset.id)
        named = client.named_decisions
        asked = {**TEAM, "abstain": {"min_probability": 0.5}}
        named.create("ticket_owner", [asked], description="Who owns a ticket", note="first")
        reworded = {**asked, "question": "Which team should own this ticket, in any words?"}
        named.add_version("ticket_owner", [reworded], note="any words")
        named.move("ticket_owner", "staging", 2)
        for text, team in TICKETS * 10:
            answer = client.decision("ticket_owner").decide(text, store=True)
            client.feedback(answer.id, {"team": team}, by="person")
        client.families.wait("triage", client.jobs.wait(training, progress=False), progress=False)
        running.opened = {
            "dataset": f"page=datasets&dataset={dataset.id}",
            "draft": f"page=review&draft={client.drafts.create(dataset.id).id}",
            "family": "page=families&family=triage",
            "evaluation": f"page=evaluations&evaluation={next(iter(client.evaluations.list(dataset.id))).id}",
            "decision": "page=decisions&named=ticket_owner",
        }
        yield running


def draw(page, name, query, theme, width):
    """Draw a page in a theme and at a width, where nothing of it is cut off."""
    from PIL import Image

    folder = Path(GALLERY)
    folder.mkdir(parents=True, exist_ok=True)
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=theme)
    visit(page, query)
    expect(page.locator(".skeleton:visible")).to_have_count(0)
    picture, before = page.screenshot(), b""
    for _ in range(_LOOKS):
        if picture == before:
            break
        page.wait_for_timeout(700)  # buttons and figures are drawn after the page
        picture, before = page.screenshot(), picture
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    drawn = Image.open(io.BytesIO(picture))
    drawn.quantize(256).save(folder / f"{name}-{theme}-{width}.png", optimize=True)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("theme", THEMES)
def test_every_page_is_drawn(quiet_page, server, theme, width):
    [dataset] = server.client.datasets.list().data
    for entry in ENTRIES:
        is_of_one = entry.section == "data" and entry.slug != "datasets"
        if not entry.needs_sign_in:
            of = f"&dataset={dataset.id}" if is_of_one else ""
            draw(quiet_page, entry.slug, f"page={entry.slug}{of}", theme, width)
    for name, query in server.opened.items():
        draw(quiet_page, name, query, theme, width)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("theme", THEMES)
def test_so_are_the_pages_of_people(quiet_page, signed_in, theme, width):
    page, cookie = quiet_page, signed_in
    page.home = cookie["url"]
    draw(page, "sign-in", "", theme, width)
    page.context.add_cookies([cookie])
    for entry in ENTRIES:
        if entry.needs_sign_in:
            draw(page, entry.slug, f"page={entry.slug}", theme, width)
