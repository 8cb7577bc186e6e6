"""Twelve tasks, and the six first steps, by mouse alone on an empty home, each press counted.

With STEELYARD_WALK set to a folder, a picture of each press is written there.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

import steelyard
from steelyard.cli.samples import load_samples
from support.browser.browsing import SLOWLY
from ui.test_loop import messy_rows, until_trained

#: Two minutes each; the parts are tested by themselves in the files beside this one.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
pytest.importorskip("panel", reason="needs the workbench extra")

MOST_PRESSES = 60
STEPS = ("Ask", "Correct 10", "Train", "Read the check", "Name it", "Use it")
PICTURES = os.environ.get("STEELYARD_WALK")


@pytest.fixture(params=["light", "dark"])
def theme(request):
    return request.param


@pytest.fixture
def server():
    with steelyard.embed(engine="hashing") as running:
        yield running


@pytest.fixture
def workbench(server):
    from steelyard_workbench.frame.serving import Served

    served = Served(server.url)
    yield served
    served.stop()


class Mouse:
    """Makes a person's presses, counts them by task, and takes pictures where requested."""

    def __init__(self, page, theme) -> None:
        self.page, self.theme, self.task = page, theme, ""
        self.presses: dict[str, int] = {}
        page.set_default_timeout(3 * SLOWLY)

    def begin(self, task) -> None:
        self.task = task
        self.presses[task] = 0

    def press(self, name, within=None) -> None:
        # A word of the menu is no button element.
        buttons = (within or self.page).get_by_role("button", name=name, exact=True)
        self.click(buttons.and_(self.page.locator("button")).first)

    def click(self, target) -> None:
        target.click()
        self.note()

    def choose(self, field, option) -> None:
        """Choose an option of a field: two presses."""
        self.click(field)
        self.click(self.page.get_by_text(option, exact=True).last)

    def note(self) -> None:
        self.presses[self.task] += 1
        if PICTURES:
            number = sum(self.presses.values())
            self.page.wait_for_timeout(1200)
            name = f"{self.theme}-{number:02d}-{self.task.replace(' ', '-')}.png"
            self.page.screenshot(path=Path(PICTURES) / name)

    def sees(self, text) -> None:
        expect(self.page.get_by_text(text).first).to_be_visible(timeout=3 * SLOWLY)


def ask_and_keep(mouse) -> None:
    page = mouse.page
    mouse.begin("ask")
    mouse.press("Ask a question")
    mouse.choose(page.get_by_role("combobox").filter(has_text="one of several").first, "yes or no")
    page.get_by_label("Question", exact=True).fill("Does the customer want money back?")
    mouse.press("Ask")
    mouse.sees("Was it right?")
    mouse.begin("keep")
    mouse.press("Yes, it was")
    mouse.sees("It waits for my_questions.")


def import_and_merge(mouse) -> None:
    page = mouse.page
    mouse.begin("import")
    mouse.click(page.get_by_text("Data", exact=True).first)
    with page.expect_file_chooser() as chooser:
        mouse.click(page.get_by_text("Choose a file"))
    chooser.value.set_files({"name": "mails.csv", "mimeType": "text/csv", "buffer": messy_rows()})
    merge = page.get_by_role("button", name=re.compile(r"^Merge \d+ variants: 6 answers"))
    mouse.begin("merge")
    mouse.click(merge)
    expect(merge).to_be_hidden()
    mouse.press("Import")
    expect(page.get_by_role("heading", name="mails", exact=True)).to_be_visible()


def review_fifty(mouse) -> None:
    page = mouse.page
    mouse.begin("review")
    mouse.press("Review it")
    mouse.press("Start a review")
    page.get_by_label("Words (key /)").fill("overcharge")
    mouse.click(page.get_by_role("heading", name="mails", exact=True))
    mouse.sees("Row 1 of 50")
    mouse.press("Bulk view (b)")
    mouse.choose(page.get_by_role("combobox").filter(has_text="accept").first, "team is Billing")
    mouse.press("Set Billing on 50 rows (all that match)")
    mouse.press("Set Billing on 50 rows", page.get_by_role("dialog"))
    mouse.sees("Changed (50)")
    mouse.press("Finish this version…")
    mouse.press("Finish", page.get_by_role("dialog"))
    mouse.sees("it became version 2")


def train_and_read(mouse, client) -> None:
    page = mouse.page
    mouse.begin("train")
    mouse.press("Train on it")
    page.get_by_label("Name (a to z, 0 to 9, hyphens)").fill("triage")
    mouse.press("Show the plan")
    mouse.press("Start")
    expect(page.get_by_role("heading", name="triage")).to_be_visible()
    until_trained(client)
    mouse.begin("read the verdict")
    mouse.sees("Passed the check")
    mouse.sees("Answers since")
    mouse.click(page.get_by_role("button", name=re.compile(r"^All [\d,]+ fixed$")).first)
    mouse.sees("Rows for the check")


def name_it(mouse) -> None:
    page = mouse.page
    mouse.begin("name it")
    mouse.press("Name it")
    page.get_by_label("Name of the decision, such as refund_request").fill("mail_team")
    expect(page.get_by_label("Question", exact=True)).to_have_value("Which team fits?")
    mouse.press("Make it")
    expect(page.get_by_role("region", name="Production")).to_be_visible()


def edit_move_and_roll_back(mouse) -> None:
    page = mouse.page
    dialog = page.get_by_role("dialog")
    mouse.begin("edit it")
    mouse.press("Edit")
    page.get_by_label("Sure enough to act from, 0 to 1; empty: always").fill("0.3")
    page.get_by_label("What changes, for your colleagues").fill("a person takes the unsure ones")
    mouse.press("Save as a new version")
    mouse.sees("Version 2 is saved.")
    mouse.begin("move it")
    mouse.press("Compare with production")
    mouse.press("Move 2 to production")
    mouse.press("Move production", dialog)
    mouse.sees("production moved from 1 to 2, which passed")
    mouse.begin("roll back")
    mouse.press("Roll back to 1")
    mouse.press("Roll back", dialog)
    mouse.sees("production moved from 2 to 1")


def share(mouse) -> None:
    mouse.begin("share")
    slider = mouse.page.get_by_role("slider", name="Percent of the requests for production")
    track = slider.locator("xpath=ancestor::span[contains(@class, 'MuiSlider-root')]")
    box = track.bounding_box()
    track.click(position={"x": box["width"] * 20 / 90, "y": box["height"] / 2})
    mouse.note()
    mouse.click(mouse.page.get_by_role("button", name=re.compile(r"^Send it (19|20|21) %$")))
    mouse.sees(re.compile("% goes to staging, version 2"))


def test_twelve_tasks_take_sixty_presses_at_most(quiet_page, server, theme):
    page, client = quiet_page, server.client
    page.emulate_media(color_scheme=theme)
    page.goto(page.home)
    mouse = Mouse(page, theme)
    ask_and_keep(mouse)
    import_and_merge(mouse)
    review_fifty(mouse)
    train_and_read(mouse, client)
    name_it(mouse)
    edit_move_and_roll_back(mouse)
    share(mouse)
    assert client.named_decisions.get("mail_team").shares[0].to == "staging"
    assert len(mouse.presses) == 12
    assert sum(mouse.presses.values()) <= MOST_PRESSES, mouse.presses


def go_to_step(mouse, number) -> None:
    """Go back to the first steps, where that one comes next."""
    mouse.press(re.compile("^Step [1-6] of 6$"))
    now = mouse.page.locator("[aria-current=step]")
    expect(now).to_have_text(re.compile(f"^{STEPS[number - 1]}"))


def correct_ten(mouse) -> None:
    """Correct a ticket and find nine to be right, after a break at the fifth."""
    page = mouse.page
    mouse.press("Review the sample")
    mouse.sees("Row 1 of")
    mouse.click(page.get_by_role("button", name=re.compile("^[1-9] (?!.*label)")).first)
    for number in range(2, 11):
        if number == 5:  # left in the middle, and taken up again
            mouse.sees("Row 5 of")
            page.goto(page.home)
            mouse.sees("4 of 10")
            mouse.press("Review the sample")
        mouse.sees(f"Row {number if number < 5 else number - 4} of")
        mouse.press("a Accept")
    mouse.sees("Changed (1)")


def test_the_six_first_steps_lead_to_a_decision_in_a_program(quiet_page, server):
    page, client = quiet_page, server.client
    load_samples(server.url, server.home)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(page.home)
    mouse = Mouse(page, "light")
    mouse.begin("first steps")
    mouse.press("Ask a question")
    mouse.press("Ask")
    mouse.sees("Was it right?")
    go_to_step(mouse, 2)
    correct_ten(mouse)
    go_to_step(mouse, 3)
    mouse.press("Finish the review")
    mouse.press("Finish", page.get_by_role("dialog"))
    mouse.sees("it became version 2")
    go_to_step(mouse, 3)
    mouse.press("Train on it")
    mouse.press("Show the plan")
    mouse.press("Start")
    expect(page.get_by_role("heading", name="support-triage")).to_be_visible()
    until_trained(client, "support-triage")
    go_to_step(mouse, 4)
    mouse.press("See the check")
    mouse.sees("rows that neither has seen")
    go_to_step(mouse, 5)
    mouse.sees("Start from a template")
    mouse.press("Name a decision")
    expect(page.get_by_label("Name of the decision, such as refund_request")).to_have_value(
        "support-triage"
    )
    mouse.press("Make it")
    expect(page.get_by_role("region", name="Production")).to_be_visible()
    go_to_step(mouse, 6)
    mouse.press("Copy the code")
    mouse.press("Copy curl")
    assert "support-triage" in page.evaluate("navigator.clipboard.readText()")
    # Never again, once all are done.
    mouse.click(page.get_by_role("button", name="Steelyard"))
    mouse.sees("What needs you")
    expect(page.locator("[aria-current=step]")).to_be_hidden()
    page.goto(page.home)
    mouse.sees("Recent")
    expect(page.locator("[aria-current=step]")).to_be_hidden()
