"""The loop in one browser, on a fresh home: ask, keep, import, train, correct, continue, ask again.

By mouse alone: keys are pressed only for text written into a field.

With STEELYARD_PICTURES set to a folder, pictures of each step are written there with the gate's
figures. The page of the documents is made of both; ``scripts/pictures`` makes them.
"""

from __future__ import annotations

import io
import json
import os
import queue
import random
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

import steelyard
from steelyard.people import mail_service
from steelyard.storage import open_state
from support.accounts.console import begin_session, code_of
from support.browser.browsing import SLOWLY, visit
from support.waiting import wait_until

#: Two minutes; its parts are looked at by themselves in the files beside this one.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]
pytest.importorskip("panel", reason="needs the workbench extra")

MIA, RITA = "mia@example.org", "rita@example.org"
PHONE = {"width": 390, "height": 844}
#: Pixels of a phone's first screen that its browser's own bars leave.
FIRST_SCREEN = 664
#: Mails of the file under the wrong team.
N_WRONG = 50
PICTURES = os.environ.get("STEELYARD_PICTURES")
#: Milliseconds for the first page of a fresh home, which imports all that pages need.
PATIENTLY = 2 * SLOWLY
#: A fine-tune takes most of a minute, and many on a machine that has much else to do.
TRAINED_S = 900
#: By team: how a file of several people writes it, and words of its mails.
TEAMS = {
    "billing": (("billing", "Billing", "BILLING", "billings"), ("invoice", "refund", "charge")),
    "shipping": (("shipping", "Shipping ", "SHIPPING"), ("parcel", "courier", "doorstep")),
    "technical": (("technical", "Technical", "TECHNICAL"), ("screen", "battery", "crash")),
    "account": (("account", "Account", "accounts"), ("password", "login", "profile")),
    "returns": (("returns", "Returns", "return"), ("exchange", "size", "sender")),
    "n/a": (("n/a", "N/A", "none", "n a"), ("weather", "holiday", "football")),
}


def messy_rows() -> bytes:
    """A CSV of 300 mails that writes six teams in twenty ways, fifty mails under the wrong one."""
    drawn, lines = random.Random(7), ["mail,team"]
    for number in range(300):
        if number % 6 == 0:
            label, words = "n/a", ["overcharge", "invoice"]
        else:
            spellings, known = list(TEAMS.values())[number % 5 if number % 7 else 5]
            label, words = drawn.choice(spellings), drawn.sample(known, 2)
        lines.append(f"Mail {number:03d}: my {words[0]} and the {words[1]} are wrong.,{label}")
    return "\n".join(lines).encode()


def until_trained(client, name: str = "triage") -> None:
    """Wait until a family's fine-tunes have ended, and it serves its latest model."""

    def is_trained() -> bool:
        family = client.families.get(name)
        has_ended = all(job.outcome for job in family.jobs)
        return has_ended and family.served is not None and family.served == family.latest

    wait_until(is_trained, TRAINED_S, last=lambda: client.families.get(name))


class Camera:
    """Takes pictures of a page in both themes, where requested."""

    def __init__(self, page) -> None:
        self.page, self.count = page, 0
        self._pictures: dict[str, list[Any]] = {"": [], "-dark": []}

    def save_moving(self, folder: Path) -> None:
        """Write all pictures of a theme as one that moves."""
        for ending, (first, *others) in self._pictures.items():
            path = folder / f"loop{ending}.webp"
            moves = {"save_all": True, "append_images": others, "duration": 2200, "loop": 0}
            first.save(path, quality=45, method=6, **moves)

    def __call__(self, name: str = "") -> None:
        """Take a picture; one without a name is of those that move alone."""
        self.count += 1
        if PICTURES:
            from PIL import Image

            expect(self.page.locator(".skeleton:visible")).to_have_count(0)
            for ending, theme in (("-dark", "dark"), ("", "light")):
                self.page.emulate_media(color_scheme=theme)
                expect(self.page.locator(f".mui-{theme}").first).to_be_visible()
                self.page.wait_for_timeout(700)
                drawn = Image.open(io.BytesIO(self.page.screenshot()))
                if name:
                    path = Path(PICTURES) / f"{self.count:02d}-{name}{ending}.webp"
                    drawn.save(path, quality=60, method=6)
                self._pictures[ending].append(drawn)


@pytest.fixture(scope="module")
def letters():
    return queue.SimpleQueue()


@pytest.fixture(scope="module")
def server(tmp_path_factory, letters):
    """A server on a fresh home, of which Mia is the owner."""
    home = tmp_path_factory.mktemp("home")
    given = {"engine": os.environ.get("STEELYARD_PICTURES_ENGINE", "hashing")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mail_service, "write_to_terminal", letters.put)
        with steelyard.embed(home, accounts="on", **given) as running:
            state = open_state(f"sqlite:///{home / 'state.sqlite'}")
            begin_session(state, MIA, at=1.0)
            begin_session(state, RITA, at=1.0, role="reviewer")
            state.close()
            yield running


def sign_in(page, letters, email):
    page.set_default_timeout(PATIENTLY)
    page.goto(page.home)
    page.get_by_label("E-mail address").fill(email)
    page.get_by_role("button", name="Send a code").click()
    letter = letters.get(timeout=SLOWLY / 1000)
    page.get_by_label("Code", exact=True).fill(code_of(letter))
    page.get_by_role("button", name="Sign in", exact=True).click()


@pytest.fixture
def phone(browser, workbench):
    """A page on a phone that is held upright."""
    context = browser.new_context(
        viewport=PHONE,
        has_touch=True,
        is_mobile=True,
        user_agent="Mozilla/5.0 (Linux; Android 15) Chrome/140.0 Mobile Safari/537.36",
    )
    page = context.new_page()
    page.home = workbench.url
    yield page
    context.close()


class Walk:
    """A person at the workbench."""

    def __init__(self, page, client) -> None:
        self.page, self.client, self.picture = page, client, Camera(page)

    def press(self, name, within=None) -> None:
        button = (within or self.page).get_by_role("button", name=name, exact=True)
        button.and_(self.page.locator("button")).click()  # no word of the menu

    def sees(self, text) -> None:
        expect(self.page.get_by_text(text).first).to_be_visible()


def ask_and_keep(walk) -> None:
    """Ask, keep the answer, mark the right outcome, and keep that as the first row of a dataset."""
    visit(walk.page, "page=playground")
    walk.page.get_by_label("Keep this answer").check()
    walk.press("Ask")
    walk.sees("input tokens")
    walk.picture("answer")
    walk.press("No…")
    walk.page.get_by_role("combobox", name="Right for team").first.click()
    walk.page.get_by_text("shipping", exact=True).last.click()
    walk.press("Keep it")
    walk.sees("It waits for my_questions.")
    walk.sees("Live has it as feedback.")
    walk.picture("kept")


def import_mails(walk):
    """Import a spreadsheet, merged to six outcomes by one press."""
    visit(walk.page, "page=datasets")
    file = {"name": "mails.csv", "mimeType": "text/csv", "buffer": messy_rows()}
    walk.page.locator("input[type=file]").set_input_files([file])
    merge = walk.page.get_by_role("button", name=re.compile(r"^Merge \d+ variants: 6 answers"))
    expect(merge).to_be_visible()
    walk.picture("import")
    merge.click()
    expect(merge).to_be_hidden()
    walk.press("Import")
    expect(walk.page.get_by_role("heading", name="mails", exact=True)).to_be_visible()
    walk.picture("dataset")
    [dataset] = walk.client.datasets.list().data
    [row] = walk.client.datasets.rows(dataset.id, limit=1).data
    assert (dataset.rows, len(row.decisions[0]["outcomes"])) == (300, 6)
    return dataset


def train(walk) -> None:
    """Train a family on the dataset that is open."""
    walk.press("Train on it")
    walk.page.get_by_label("Name (a to z, 0 to 9, hyphens)").fill("triage")
    walk.press("Show the plan")
    walk.press("Start")
    expect(walk.page.get_by_role("heading", name="triage")).to_be_visible()
    walk.sees("Open its dataset")  # the last of what stands at the right
    walk.picture("training")
    until_trained(walk.client)


def come_to_the_wrong_rows(walk, dataset) -> None:
    """Rename one outcome, and come to the fifty mails that are under the wrong team."""
    page = walk.page
    visit(page, f"page=review&dataset={dataset.id}")
    walk.press("Start a review")
    walk.press("Answers")
    page.get_by_label("Name of n/a").fill("other")
    page.get_by_label("What n/a means").fill("nothing for a team")
    page.get_by_label("Name of n/a").click()
    walk.picture("outcomes")
    walk.press("Save the answers")
    walk.sees("team has 6 answers")
    walk.press("Answers")
    page.get_by_label("Words (key /)").fill("overcharge")
    page.get_by_role("heading", name="mails", exact=True).click()
    walk.sees(f"Row 1 of {N_WRONG}")
    walk.picture("review")


def correct_by_mouse(walk, dataset) -> None:
    """Label the fifty mails by the team that they are for, a press each, and seal that as version 2."""
    page = walk.page
    billing = page.get_by_role("button", name=re.compile("billing", re.IGNORECASE))
    for number in range(1, N_WRONG + 1):
        walk.sees(f"Row {number} of {N_WRONG}")
        billing.first.click()
    walk.sees("You went through To review")
    walk.picture()
    walk.press("Finish this version…")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("triage can continue on it.")).to_be_visible()
    walk.picture("seal")
    walk.press("Finish", dialog)
    walk.sees("it became version 2")
    walk.picture("sealed")
    assert walk.client.datasets.get(dataset.id).version == 2


def continue_and_ask(walk) -> None:
    """Continue the family on the corrections, see the gate pass, and ask the model that serves."""
    page = walk.page
    walk.press("Continue triage…")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Continue", exact=True)).to_be_visible()
    walk.picture("continue")
    walk.press("Continue", dialog)
    until_trained(walk.client)
    walk.sees("Answers since")  # a button is drawn anew until then
    walk.picture("gate")
    walk.press("Ask it")
    walk.picture()
    walk.press("Ask")
    walk.sees("input tokens")
    walk.picture("family-answers")


def write_figures(client, dataset) -> None:
    """Write the gates' figures, where pictures are requested."""
    gates = {model.ref: model.gate for model in client.families.get("triage").models}
    assert len(gates) >= 2
    assert all(gate.passed for gate in gates.values())
    if PICTURES:
        found = {"rows": dataset.rows, "corrected": N_WRONG, "gates": {}}
        for name, gate in gates.items():
            for group_name, group in gate.groups.items():
                found["gates"][f"{name}, {group_name}"] = {
                    "decisions": group.decisions,
                    "right_before": round(group.accuracy.before, 3),
                    "right_after": round(group.accuracy.after, 3),
                    "judged_on": gate.judged_on,
                }
        path = Path(PICTURES) / "figures.json"
        path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def review_on_a_phone(page, walk, dataset, letters) -> None:
    """As a reviewer with a phone: come to the rows that wait, and decide on one with the thumb."""
    draft = walk.client.drafts.create(dataset.id)
    walk.client.drafts.assign(draft.id, [RITA])
    sign_in(page, letters, RITA)
    phone = Walk(page, walk.client)
    phone.sees("300 rows in mails")
    phone.picture("phone-first-page")
    phone.press("Start")
    phone.sees("Row 1 of 300")
    phone.picture("phone-review")
    accept = page.get_by_role("button", name=re.compile("Accept")).first
    # The verbs stand at the foot of the screen, which a browser's own bars make lower.
    page.set_viewport_size({**PHONE, "height": FIRST_SCREEN})
    box = accept.bounding_box()
    assert box["y"] + box["height"] < FIRST_SCREEN
    page.set_viewport_size(PHONE)
    accept.tap()
    phone.sees("Row 2 of 300")
    # Nothing is cut at the right, and the menu lies over nothing.
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    expect(page.get_by_role("button", name="Data", exact=True)).to_be_hidden()


def test_the_loop_closes_from_an_empty_home_to_a_better_model(quiet_page, phone, server, letters):
    sign_in(quiet_page, letters, MIA)
    expect(quiet_page.get_by_role("button", name=f"Sign out {MIA}")).to_be_visible()
    walk = Walk(quiet_page, server.client)
    ask_and_keep(walk)
    dataset = import_mails(walk)
    train(walk)
    come_to_the_wrong_rows(walk, dataset)
    correct_by_mouse(walk, dataset)
    continue_and_ask(walk)
    write_figures(server.client, dataset)
    if PICTURES:
        walk.picture.save_moving(Path(PICTURES))
    review_on_a_phone(phone, walk, dataset, letters)
