"""Map: the rows of a dataset are laid out, some are drawn around, and a review of them opens."""

from __future__ import annotations

import itertools
import re

import pytest
from playwright.sync_api import expect

from support.browser.browsing import visit

pytest.importorskip("panel", reason="needs the workbench extra")
axe_sync = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe")

from steelyard_workbench.pages.map import map_view  # noqa: E402

TEAM = {"id": "team", "question": "Which team?", "outcomes": ["money", "parcel"]}
SAID = {"money": "my card was charged twice", "parcel": "the courier lost a box of mine"}
#: Where a point of the figure is on the screen, once the figure has come to rest.
_PLACE = """([x, y]) => {
  const [view] = [...Bokeh.index.query((one) => one.model.title?.text === "Rows by likeness")];
  if (!view) return null;
  view.el.scrollIntoView({block: "center"});
  const box = view.el.getBoundingClientRect();
  const {x_scale, y_scale} = view.frame;
  const place = [box.x + x_scale.compute(x), box.y + y_scale.compute(y)];
  const isAtRest = String(place) === String(window.placeBefore);
  window.placeBefore = place;
  return isAtRest ? place : null;
}"""
#: What the figure draws of all points and of a few: whether each is visible, and copied from WebGL.
_DRAWN = """([wanted, isMoved]) => {
  const [view] = [...Bokeh.index.query((one) => one.model.title?.text === "Rows by likeness")];
  if (isMoved) {
    view.model.document.interactive_start(view.model);
    view.model.x_range.setv({start: view.model.x_range.start - 1e-6});
  }
  const told = view.model.renderers.map((one) => [one.visible, view.views.find_one(one).has_webgl]);
  return JSON.stringify(told) === JSON.stringify(wanted);
}"""
_ALL, _FEW = [[True, True], [False, False]], [[False, False], [True, False]]


@pytest.fixture(scope="module")
def dataset(server):
    rows = [
        {
            "context": f"{SAID[name]}, ticket {number}",
            "decisions": [TEAM],
            "targets": {"team": {name: 1.0}},
        }
        for number in range(30)
        for name in [TEAM["outcomes"][number % 2]]
    ]
    return server.client.datasets.create("tickets", rows)


@pytest.mark.slow
def test_rows_are_laid_out_drawn_around_and_reviewed(quiet_page, server, dataset, monkeypatch):
    page = quiet_page
    monkeypatch.setattr(map_view, "_MOVING", 10)
    visit(page, f"page=datasets&dataset={dataset.id}")
    page.get_by_role("button", name=re.compile("^Details")).click()
    page.get_by_role("button", name="Map it").click()
    expect(page.get_by_text("No map of this version yet.")).to_be_visible()
    page.get_by_role("button", name="Lay out the rows").click()
    expect(page.get_by_role("button", name="money (15)")).to_be_visible()
    page.wait_for_function(_PLACE, arg=[0, 0], polling=250)
    # While it is moved some of the points stand for all, and WebGL has no part in it.
    page.wait_for_function(_DRAWN, arg=[_ALL, False])
    page.wait_for_function(_DRAWN, arg=[_FEW, True])
    page.wait_for_function(_DRAWN, arg=[_ALL, False])
    assert axe_sync.Axe().run(page).response["violations"] == []

    # A group is chosen without a pointer, and let go of.
    page.get_by_role("button", name="parcel (15)").press("Enter")
    expect(page.get_by_role("button", name="Review these 15 rows")).to_be_visible()
    page.get_by_role("button", name="Clear the selection").click()
    expect(page.get_by_role("button", name="Review these 15 rows")).to_be_hidden()

    # All rows left of the widest gap are drawn around: none is within a pixel of the line.
    [found] = server.client.maps.list(dataset_id=dataset.id)
    points = server.client.maps.points(found.id)
    xs = sorted(points.x)[10:-10]
    _, cut = max((right - at, (at + right) / 2) for at, right in itertools.pairwise(xs))
    left = sorted(index for index, x in zip(points.index, points.x, strict=True) if x < cut)
    (west, _), (south, north) = map_view.span_of(points.x), map_view.span_of(points.y)
    inside = 0.01 * (north - south)  # whole pixels, as a browser gives a place
    west, south, north = west + inside, south + inside, north - inside
    corners = [(west, south), (west, north), (cut, north), (cut, south), (west + inside, south)]
    first, *others = [
        page.wait_for_function(_PLACE, arg=corner, polling=250).json_value() for corner in corners
    ]
    page.mouse.move(*first)
    page.mouse.down()
    for place in others:
        page.mouse.move(*place, steps=4)
    page.mouse.up()
    page.get_by_role("button", name=f"Review these {len(left)} rows").click()
    expect(page.get_by_role("tab", name="To review")).to_be_visible()
    expect(page.get_by_text(f"{len(left)} chosen rows")).to_be_visible()
    expect(page.get_by_text(f"Row 1 of {len(left)}").first).to_be_visible()
    [draft] = server.client.drafts.list(dataset_id=dataset.id).data
    assert draft.dataset_version == 1
