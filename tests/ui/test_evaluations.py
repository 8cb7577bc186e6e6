"""Evaluations: a model is evaluated, a bin opens its rows, two are compared, a report opens alone."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest
from playwright.sync_api import TimeoutError as NotInTimeError
from playwright.sync_api import expect

import steelyard
from support.browser.browsing import SLOWLY, visit
from support.datasets.dataset_rows import make_rows

axe_sync = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe")

#: Where a mark of a chart is on the screen, once it has come to rest: the chart by its title, the
#: mark by its data.
_PLACE = """([title, x, y]) => {
  const [view] = [...Bokeh.index.query((one) => one.model.title?.text === title)];
  if (!view) return null;
  view.el.scrollIntoView({block: "center"});
  const box = view.el.getBoundingClientRect();
  const {x_scale, y_scale} = view.frame;
  const place = [box.x + x_scale.compute(x), box.y + y_scale.compute(y)];
  const isAtRest = String(place) === String(window.placeBefore);
  window.placeBefore = place;
  return isAtRest ? place : null;
}"""


@pytest.fixture(scope="module")
def server():
    with steelyard.embed(
        engine="hashing", base_models="second=hashing", dataset_min_rows=1
    ) as running:
        yield running


@pytest.fixture(scope="module")
def dataset(server):
    return server.client.datasets.create("tickets", evaluation=make_rows(40))


def click_until(page, mark, text):
    """Click on a mark until a text shows: a chart that is drawn anew takes no click meanwhile."""
    wanted = page.get_by_text(text)
    deadline = time.monotonic() + SLOWLY / 1000
    while not wanted.is_visible() and time.monotonic() < deadline:
        page.mouse.click(*page.wait_for_function(_PLACE, arg=mark, polling=250).json_value())
        with suppress(NotInTimeError):
            wanted.wait_for(timeout=5_000)
    expect(wanted).to_be_visible()


@pytest.mark.slow
def test_a_model_is_evaluated_and_a_bin_opens_its_rows(quiet_page, server, dataset, tmp_path):
    visit(quiet_page, f"page=evaluations&dataset={dataset.id}")
    quiet_page.get_by_role("checkbox", name="hashing", exact=True).check()
    quiet_page.get_by_role("button", name="Evaluate", exact=True).click()
    expect(quiet_page.get_by_text("1 started.")).to_be_visible()
    expect(quiet_page.get_by_text("80 answers")).to_be_visible()

    quiet_page.get_by_role("link", name="hashing, version 1").click()
    expect(quiet_page.get_by_text("All 80 scored decisions.")).to_be_visible()
    [one] = server.client.evaluations.list(dataset.id)
    row = next(row for row in server.client.evaluations.detail(one.id).reliability if row.n)
    mark = [
        "How often it is right against how sure it is",
        row.mean_top_probability,
        row.accuracy.value,
    ]
    click_until(quiet_page, mark, f"{row.n} of 80 scored decisions: top pro")
    quiet_page.keyboard.press("j")
    expect(quiet_page.get_by_role("region", name="Text of row")).to_contain_text("Invoice")

    with quiet_page.expect_download() as download:
        quiet_page.get_by_role("button", name="Report (HTML)").click()
    download.value.save_as(tmp_path / "report.html")
    quiet_page.context.set_offline(True)
    quiet_page.goto((tmp_path / "report.html").as_uri())
    expect(quiet_page.get_by_role("heading", name="hashing on tickets")).to_be_visible()
    quiet_page.wait_for_function("[...Bokeh.index.query((one) => one.model.title)].length >= 6")
    quiet_page.get_by_text("Numbers").first.click()
    expect(quiet_page.get_by_role("table", name="How sure and right")).to_be_visible()


@pytest.mark.slow
def test_two_are_compared_and_their_flips_are_read(quiet_page, server, dataset):
    for one in server.client.evaluations.create(dataset.id, ["hashing", "second"]).data:
        server.client.evaluations.wait(one, timeout_s=60, progress=False)
    visit(quiet_page, f"page=evaluations&dataset={dataset.id}")
    quiet_page.get_by_role("button", name="Show data").click()
    runs = quiet_page.get_by_role("table", name="Runs, newest first")
    expect(runs.get_by_role("button", name="second")).to_be_visible()
    quiet_page.wait_for_function(_PLACE, arg=["Share right", 0, 0], polling=250)
    assert axe_sync.Axe().run(quiet_page).response["violations"] == []
    runs.get_by_role("button", name="second").click()
    expect(quiet_page.get_by_text("All 80 scored decisions.")).to_be_visible()

    visit(quiet_page, f"page=compare&dataset={dataset.id}")
    expect(quiet_page.get_by_text("80 answers to 40 texts, by both")).to_be_visible()
    second, first = [one.id for one in server.client.evaluations.list(dataset.id)]
    flips = server.client.evaluations.compare(first, second).overall.flips
    quiet_page.get_by_role("button", name=f"fixed ({flips.fixed})").click()
    expect(quiet_page.get_by_text(f"{flips.fixed} fixed: wrong before")).to_be_visible()
    expect(quiet_page.get_by_role("heading", name="Slices by change")).to_be_visible()
    quiet_page.keyboard.press("j")
    read = quiet_page.get_by_role("region", name="Text of change").inner_text()
    quiet_page.get_by_role("button", name="Send to review").click()
    expect(quiet_page.get_by_role("tab", name="To review")).to_be_visible()
    expect(quiet_page.get_by_text(read, exact=True)).to_be_visible()
