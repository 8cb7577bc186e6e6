"""Review: five rows by keys, one undone, sealed; and another browser sees the result."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from steelyard.decisions.several import multi_label
from support.browser.browsing import SLOWLY, visit

axe_sync = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe")

TEAM = {
    "id": "team",
    "kind": "single",
    "question": "Which team should own this ticket?",
    "outcomes": {"billing": "money", "shipping": "parcels", "technical": "faults"},
}


@pytest.fixture
def dataset(server):
    """A dataset of eight tickets, all of them labelled billing."""
    rows = [
        {
            "context": f"Ticket {number}: my card was charged twice for order {number}.",
            "decisions": [TEAM],
            "targets": {"team": {"billing": 1.0}},
        }
        for number in range(8)
    ]
    return server.client.datasets.create("tickets", rows, evaluation_fraction=0.25)


def test_five_rows_are_reviewed_by_keys_one_is_undone_and_the_draft_is_sealed(
    quiet_page, dataset, server, browser
):
    page = quiet_page
    visit(page, f"page=review&dataset={dataset.id}")
    page.get_by_role("button", name="Start a review").click()
    told = page.get_by_role("status")
    expect(page.get_by_text("Row 1 of 8").first).to_be_visible(timeout=SLOWLY)
    expect(page.get_by_role("tab", name="To review (8)")).to_be_visible()

    page.keyboard.press("2")
    expect(told).to_have_text("row 1 of 8, shipping")
    expect(page.get_by_text("Row 2 of 8").first).to_be_visible()
    page.keyboard.press("a")
    page.keyboard.press("x")
    page.keyboard.press("3")
    page.keyboard.press("x")
    expect(told).to_have_text("row 5 of 8, excluded")
    expect(page.get_by_role("tab", name="Excluded (2)")).to_be_visible()

    page.keyboard.press("u")
    expect(page.get_by_text("Row 5 of 8").first).to_be_visible()
    expect(page.get_by_role("tab", name="Excluded (1)")).to_be_visible()
    expect(page.get_by_role("tab", name="To review (4)")).to_be_visible()

    back = page.get_by_role("button", name="Back")
    back.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("Row 4 of 8").first).to_be_visible()
    expect(back).to_be_focused()

    page.get_by_role("button", name="Finish this version…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("rows get another label")).to_be_visible()
    dialog.get_by_role("button", name="Finish", exact=True).click()
    expect(page.get_by_text("it became version 2").first).to_be_visible(timeout=SLOWLY)
    expect(page.get_by_role("button", name="Evaluate it")).to_be_visible()

    sealed = server.client.datasets.get(dataset.id)
    assert (sealed.version, sealed.rows) == (2, 7)
    other = browser.new_context().new_page()
    other.home = page.home
    visit(other, f"page=review&dataset={dataset.id}")
    expect(other.get_by_text("tickets (7 rows)")).to_be_visible(timeout=SLOWLY)
    expect(other.get_by_text("No review is open.")).to_be_visible()
    other.context.close()


@pytest.mark.slow
def test_rows_are_changed_many_at_once_and_a_row_opens_in_focus(quiet_page, dataset, server):
    draft = server.client.drafts.create(dataset.id)
    page = quiet_page
    visit(page, f"page=review&draft={draft.id}&view=bulk")
    expect(page.get_by_role("button", name="Accept 8 rows (all that match)")).to_be_visible(
        timeout=SLOWLY
    )
    expect(page.get_by_text("Ticket 3: my card")).to_be_visible()
    page.keyboard.press("Shift+J")
    expect(page.get_by_role("status")).to_contain_text("1 selected")
    page.keyboard.press("*")
    page.get_by_role("dialog").get_by_role("button", name="Accept 8 rows", exact=True).click()
    expect(page.get_by_role("tab", name="To review (0)")).to_be_visible(timeout=SLOWLY)
    assert server.client.drafts.get(draft.id).states["accepted"] == 8

    page.get_by_role("tab", name="All (8)").click()
    # A note is for the row that has the focus, wherever the keys of the page went before.
    page.get_by_text("Ticket 5: my card").locator("xpath=ancestor::*[@role='row']").focus()
    page.keyboard.press("n")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("heading", name="Note on row 5")).to_be_visible()
    expect(dialog.get_by_label("Note", exact=True)).to_be_focused()
    page.keyboard.type("a card?")
    dialog.get_by_role("button", name="Cancel").focus()
    page.keyboard.press("?")
    dialog.get_by_role("button", name="Save the note").click()
    expect(dialog).to_be_hidden()
    expect(page.get_by_role("heading", name="Keys")).to_have_count(0)
    expect(page.get_by_role("tab", name="Noted (1)")).to_be_visible()
    noted = server.client.drafts.rows(draft.id, queue="noted").data
    assert [row.now.note for row in noted] == ["a card?"]
    page.get_by_text("Ticket 3: my card").click()
    text = page.get_by_role("region", name="Text")
    expect(text).to_have_css("unicode-bidi", "plaintext")  # a text of its own direction
    expect(text).to_have_text("Ticket 3: my card was charged twice for order 3.")


@pytest.mark.slow
def test_a_model_suggests_and_the_surest_rows_are_accepted_with_an_audit(
    quiet_page, dataset, server
):
    draft = server.client.drafts.create(dataset.id)
    page = quiet_page
    visit(page, f"page=review&draft={draft.id}")
    expect(page.get_by_text("Row 1 of 8").first).to_be_visible(timeout=SLOWLY)
    page.get_by_role("button", name="Suggest", exact=True).click()
    page.get_by_role("button", name="Ask the model").click()
    expect(page.get_by_text("8 rows have suggestions.")).to_be_visible()
    expect(page.get_by_role("button", name="◆ suggested")).to_be_visible()
    expect(page.get_by_role("button", name="More: Left for an audit")).to_be_visible()
    found = axe_sync.Axe().run(page).response["violations"]
    assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found] == []
    page.keyboard.press("t")
    expect(page.get_by_text("in all: 1.000 (0.025 to 1.000, n = 1)")).to_be_visible()

    # The engine of the tests is sure of little.
    page.get_by_role("textbox", name="As sure as").fill("0")
    page.get_by_role("textbox", name="As sure as").press("Tab")
    page.get_by_role("textbox", name="Left for an audit").fill("2")
    page.get_by_role("textbox", name="Left for an audit").press("Tab")
    page.get_by_role("button", name="Accept 5, audit 2").click()
    page.get_by_role("dialog").get_by_role("button", name="Accept what").click()
    expect(page.get_by_role("tab", name="To review (2)")).to_be_visible()
    expect(page.get_by_text("hidden until you decide")).to_be_visible()
    states = server.client.drafts.get(draft.id).states
    assert states["untouched"] == 2


@pytest.mark.slow
def test_two_label_apart_and_disputes_are_adjudicated(quiet_page, dataset, server):
    draft = server.client.drafts.create(dataset.id)
    page = quiet_page
    visit(page, f"page=review&draft={draft.id}")
    expect(page.get_by_text("Row 1 of 8").first).to_be_visible(timeout=SLOWLY)
    page.get_by_role("button", name="Reviewers", exact=True).click()
    expect(page.get_by_text("Without a reviewer: 8 undecided rows.")).to_be_visible()
    page.get_by_label("Reviewers, with commas").fill("ann, bob")
    page.get_by_role("textbox", name="Labelled by two, %").fill("100")
    page.get_by_role("textbox", name="At most rows").fill("2")
    page.get_by_role("textbox", name="At most rows").press("Tab")
    page.get_by_role("button", name="Assign", exact=True).click()
    expect(page.get_by_text("2 rows of To review assigned, 2 of them to two")).to_be_visible()
    expect(page.get_by_role("tab", name="To review (6)")).to_be_visible()

    for name, keys, n_left in (("ann", "22", 6), ("bob", "23", 7)):
        field = page.get_by_label("Your name")
        field.fill(name)
        field.press("Enter")
        page.get_by_role("tab", name="Assigned to me").click()
        expect(page.get_by_text("Row 1 of 2").first).to_be_visible()
        expect(page.get_by_text("You label this row without seeing its label")).to_be_visible()
        expect(page.get_by_role("button", name="✓ label")).to_have_count(0)
        field.blur()
        page.keyboard.press(keys[0])
        expect(page.get_by_text("Row 2 of 2").first).to_be_visible()
        page.keyboard.press(keys[1])
        expect(page.get_by_text("You went through Assigned to me")).to_be_visible()
        page.get_by_role("tab", name="To review").click()
        # Of eight, one that is agreed on is done, and one that is disputed is not.
        expect(page.get_by_text(f"Row 1 of {n_left} ").first).to_be_visible()

    # The panel beside the rows hears of it, and leads to what they dispute.
    page.get_by_role("button", name="Decide 1 disputed").click()
    # The queue before shows the same row, until this one comes.
    expect(page.get_by_text("Row 1 of 1").first).to_be_visible()
    expect(page.get_by_role("button", name="shipping ● ann")).to_be_visible()
    expect(page.get_by_role("button", name="technical ● bob")).to_be_visible()
    page.get_by_role("button", name="technical ● bob").click()
    expect(page.get_by_role("tab", name="Disagreement (0)")).to_be_visible()
    found = server.client.drafts.agreement(draft.id)
    assert (found.agreed, found.disputed, found.to_adjudicate) == (1, 1, 0)
    changed = server.client.drafts.rows(draft.id, "changed").data
    labels = {max(row.now.labels["team"]): row.now.reviewer for row in changed}
    assert labels == {"shipping": "bob", "technical": "bob"}


def test_a_phone_has_the_text_and_accept_in_its_first_screen_however_many_answers_there_are(
    quiet_page, server
):
    words = [f"department number {number}" for number in range(20)]
    decisions = [
        {"id": "owner", "question": "Who owns it?", "outcomes": words},
        *multi_label("topic", dict.fromkeys(words)),
    ]
    labelled = {"decisions": decisions, "targets": {"owner": words[3]}}
    rows = [{"context": f"Ticket {n}: {'a long text ' * 60}", **labelled} for n in range(2)]
    draft = server.client.drafts.create(server.client.datasets.create("many", rows).id)
    page = quiet_page
    page.set_viewport_size({"width": 390, "height": 664})  # what a browser's own bars leave of 844
    visit(page, f"page=review&draft={draft.id}")
    accept = page.get_by_role("button", name="Accept")
    expect(accept).to_be_in_viewport(ratio=1, timeout=SLOWLY)
    expect(page.get_by_role("region", name="Text")).to_be_in_viewport()
    page.get_by_role("combobox", name="Answer of owner").select_option(words[17])
    expect(page.get_by_role("status")).to_have_text(
        f"row 1 of 2, {words[17]}; next: topic_department_number_0"
    )
    expect(accept).to_be_in_viewport(ratio=1)
