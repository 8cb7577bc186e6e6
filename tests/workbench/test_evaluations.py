"""The Evaluations page: the list, one opened with the rows behind its figures, thresholds and files."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from types import SimpleNamespace

import msgspec
import polars as pl
import pytest

import steelyard
from steelyard.app.job_runtime import open_worker
from steelyard.errors import KeyScopeError
from steelyard.evaluations.wire import Evaluation, EvaluationError
from support.browser.shown_parts import named, press, texts
from support.datasets.dataset_rows import make_rows
from support.models.evaluated import settings_of
from support.review.labelled_apart import label_apart
from support.servers.held_calls import HeldCall, Instead, until_done

pytest.importorskip("panel", reason="needs the workbench extra")

import panel as pn

from steelyard_workbench.kit.components.mark_table import MarkTable
from steelyard_workbench.kit.session import Session
from steelyard_workbench.kit.words import measure_text
from steelyard_workbench.pages.evaluations.page import EvaluationsPage
from steelyard_workbench.pages.frontier.page import FrontierPage
from steelyard_workbench.parts.evaluations import record_browser
from steelyard_workbench.parts.evaluations.charts import ForestRow, slice_rows, slice_text
from steelyard_workbench.parts.evaluations.listing import EvaluationLine
from steelyard_workbench.parts.evaluations.scored import RecordChoice, filter_from, query_of
from steelyard_workbench.parts.evaluations.what_if import share_of

GIVEN = {"base_models": "second=hashing", "dataset_min_rows": 1}
REWARDS = [
    {
        "context": {"text": f"Case {number}"},
        "decisions": [make_rows(1)[0]["decisions"][1]],
        "rewards": {"refund": {"yes": number, "no": 1}},
    }
    for number in range(12)
]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    with steelyard.embed(home, engine="hashing", jobs="off", **GIVEN) as running:
        yield running


@pytest.fixture(scope="module")
def scored(server):
    """Ids of an evaluation with targets, one with rewards, and of a dataset that has none."""
    client = server.client
    rows = make_rows(40)
    for number, row in enumerate(rows):
        row["metadata"] = {"tier": ["gold", "silver"][number % 2]}
    targets = client.datasets.create("tickets", evaluation=rows)
    rewards = client.datasets.create("replies", evaluation=REWARDS)
    empty = client.datasets.create("fresh", evaluation=make_rows(3, start=90))
    ids = {"dataset": targets.id, "rewards_dataset": rewards.id, "fresh": empty.id}
    with open_worker(settings_of(server.home, **GIVEN)):
        for name, dataset in (("targets", targets), ("rewards", rewards)):
            models = ["hashing", "second"] if name == "targets" else ["hashing"]
            found = client.evaluations.create(dataset.id, models)
            for one in found.data:
                client.evaluations.wait(one, timeout_s=60, progress=False)
            ids[name] = found.data[0].id
    return ids


def opened(server, kind=EvaluationsPage, **chosen):
    """The page as a person who follows a link sees it."""
    page = kind(Session(server.client, page=kind.slug, **chosen))
    page.open()
    return page


class TestList:
    def test_it_tells_of_each_its_figures_with_intervals_and_n(self, server, scored):
        page = opened(server, dataset=scored["dataset"])
        assert texts(page.list.__panel__()).count("80 answers") == 2
        assert "%</span>right" in texts(page.list.__panel__())

    def test_the_form_is_open_only_where_nothing_was_evaluated(self, server, scored):
        for name, is_shown in (("dataset", False), ("fresh", True)):
            page = opened(server, dataset=scored[name])
            assert ("This dataset has no evaluations yet" in texts(page.__panel__())) is is_shown
            assert page.form_box.visible is is_shown
            press(page, "Evaluate a model")
            assert page.form_box.visible is not is_shown

    def test_one_is_started_followed_cancelled_and_retried(self, server, scored):
        rows = server.client.datasets.create("more", evaluation=make_rows(2, start=50))
        page = opened(server, dataset=rows.id)
        assert page.form.button.disabled
        page.form.models.value = ["hashing"]
        assert not page.form.button.disabled
        asyncio.run(page.form.start())
        assert "1 started." in texts(page.form.said)
        asyncio.run(page.list.part.refresh())
        [one] = page.list.part.data.evaluations
        line = page.list.lines[one.id]
        assert "waits" in texts(line.__panel__())
        asyncio.run(line.cancel())
        assert page.list.part.data.evaluations[0].status == "cancelled"
        line = page.list.lines[one.id]
        assert [held.visible for held in named(line.__panel__(), "Retry")] == [True]
        asyncio.run(line.retry())
        with open_worker(settings_of(server.home, **GIVEN)):
            server.client.evaluations.wait(one.id, timeout_s=60, progress=False)
        asyncio.run(page.look())
        assert "right" in texts(page.list.__panel__())

    def test_opening_one_changes_the_address_and_leaving_it_shows_the_list(self, server, scored):
        page = opened(server, dataset=scored["dataset"])
        page.session.evaluation = scored["targets"]
        assert page.opened is not None
        page.session.evaluation = ""
        assert (page.opened, page.list is None) == (None, False)

    def test_a_key_that_may_not_disables_the_form_and_says_why(self, server, scored):
        page = opened(server, dataset=scored["fresh"])

        def refuse(*_, **__):
            raise KeyScopeError("This key may decide and nothing else.")

        page.form.client = SimpleNamespace(evaluations=SimpleNamespace(create=refuse))
        page.form.models.value = ["hashing"]
        asyncio.run(page.form.start())
        assert "This key may decide and nothing else." in texts(page.form.said)
        assert page.form.models.disabled
        assert not page.form.button.visible

    def test_models_are_evaluated_once_however_often_it_is_clicked(self, server, scored):
        create = HeldCall(lambda *_: SimpleNamespace(queued=1, reused=0))

        async def click_twice():
            page = opened(server, dataset=scored["fresh"])
            await until_done()
            form = page.form
            form.client = SimpleNamespace(evaluations=SimpleNamespace(create=create))
            form.models.value = ["hashing"]
            first = asyncio.create_task(form.start())
            await create.until_called()
            form.models.value = ["hashing", "second"]
            assert form.button.disabled
            second = asyncio.create_task(form.start())
            create.go_on()
            await asyncio.gather(first, second)
            await until_done()
            return form

        form = asyncio.run(click_twice())
        assert create.n_calls == 1
        form.models.value = ["second"]
        assert not form.button.disabled

    def test_no_dataset_leads_to_the_datasets_page(self):
        none = SimpleNamespace(list=lambda **_: SimpleNamespace(data=[]))
        page = EvaluationsPage(Session(SimpleNamespace(datasets=none)))
        page.open()
        assert "No datasets yet." in texts(page.__panel__())
        press(page, "Import a dataset")
        assert page.session.page == "datasets"

    def test_a_dataset_of_the_address_is_shown_however_many_there_are(
        self, server, scored, monkeypatch
    ):
        monkeypatch.setattr("steelyard_workbench.pages.evaluations.page.MOST_CHOICES", 1)
        [first] = server.client.datasets.list(limit=1).data
        other = next(
            scored[name] for name in ("dataset", "rewards_dataset") if scored[name] != first.id
        )
        page = opened(server, dataset=other)
        [select] = named(page.__panel__(), "Dataset")
        assert (select.value, len(select.options)) == (other, 2)
        assert page.list is not None
        assert "right" in texts(page.list.__panel__())

    def test_a_dataset_that_is_not_there_is_said(self, server, scored):
        page = opened(server, dataset="ds_none")
        assert "There is no dataset “ds\\_none”" in texts(page.__panel__())
        [select] = named(page.__panel__(), "Dataset")
        select.value = scored["dataset"]
        assert page.list is not None

    def test_a_failed_one_says_why_and_a_running_one_how_far_it_is(self, server, scored):
        one = server.client.evaluations.get(scored["targets"])
        fields = msgspec.structs.asdict(one)
        running = Evaluation(**{**fields, "status": "running", "completed_rows": 10})
        line = EvaluationLine(Session(server.client), running, None, lambda: None)
        assert "10 of 40 rows" in texts(line.__panel__())
        error = EvaluationError(code="context_too_long", message="Row 3 is <long>.")
        line.update(Evaluation(**{**fields, "status": "failed", "error": error}), None)
        assert '"context_too_long">Row 3 is &lt;long&gt;.<' in texts(line.__panel__())

    def test_another_dataset_is_chosen_at_its_newest_version(self, server, scored):
        page = opened(server, dataset=scored["dataset"], version=1, query="{}", view="slices")
        [select] = named(page.__panel__(), "Dataset")
        select.value = scored["fresh"]
        session = page.session
        assert (session.dataset, session.version) == (scored["fresh"], 0)
        assert (session.query, session.view) == ("", "")

    def test_one_is_opened_without_the_filter_of_another(self, server, scored):
        query = query_of(RecordChoice(wrong=True))
        page = opened(server, dataset=scored["dataset"], query=query, view="slices")
        page.list.lines[scored["targets"]].opener.press(0)
        assert (page.session.query, page.session.view) == ("", "")
        assert page.opened.browser.chosen == RecordChoice()


class TestFrontier:
    @pytest.fixture
    def panel(self, server, scored):
        page = opened(server, FrontierPage, dataset=scored["dataset"])
        return page, page.frontier

    def test_a_mark_and_its_line_open_the_evaluation(self, scored, panel):
        page, frontier = panel
        [data] = frontier.__panel__().select(MarkTable)
        assert {row[0] for row in data.rows} == {"hashing", "second"}
        assert "not beaten" in {row[-1] for row in data.rows}
        place = [row[0] for row in data.rows].index("hashing")
        [chart] = frontier.__panel__().select(pn.pane.Bokeh)
        [source] = {one.data_source for one in chart.object.select(name="models")}
        assert len(source.data["low"]) == 2
        source.selected.indices = [place]
        assert page.session.evaluation == scored["targets"]
        page.session.evaluation = ""
        [data] = page.frontier.__panel__().select(MarkTable)
        data.press(place)
        assert page.session.evaluation == scored["targets"]

    def test_models_stand_at_the_times_of_their_evaluations(self, panel):
        _, frontier = panel
        frontier.axis.value = "latency"
        [chart] = frontier.__panel__().select(pn.pane.Bokeh)
        [source] = {one.data_source for one in chart.object.select(name="models")}
        assert sorted(source.data["x"]) == sorted(
            point.latency_ms for point in frontier.part.data.data
        )

    def test_costs_of_mistakes(self, panel):
        _, frontier = panel
        frontier.measure.value = "log_loss"
        assert frontier.part.data.measure == "log_loss"
        frontier.measure.value = "expected_cost"
        frontier.decision.value = "refund"
        before = frontier.part.data
        assert (frontier.false_yes.visible, frontier.matrix.visible) == (True, False)
        frontier.false_yes.value = 50.0
        assert frontier.part.data.data[0].estimate != before.data[0].estimate
        frontier.decision.value = "route"
        assert (frontier.false_yes.visible, frontier.matrix.visible) == (False, True)
        assert frontier.part.data.data[0].estimate.n == 40
        frontier.matrix.value = "{"
        assert "The costs are not JSON" in texts(frontier.__panel__())

    def test_without_evaluations_it_waits_for_the_first_and_rewards_have_none(self, server, scored):
        page = opened(server, FrontierPage, dataset=scored["fresh"])
        assert "No model is evaluated on this dataset yet" in texts(page.frontier.__panel__())
        assert not page.frontier.controls.visible
        page = opened(server, FrontierPage, dataset=scored["rewards_dataset"])
        assert (page.frontier, "no labels" in texts(page.__panel__())) == (None, True)

    def test_one_that_succeeds_appears(self, server):
        rows = server.client.datasets.create("later", evaluation=make_rows(2, start=150))
        page = opened(server, dataset=rows.id)
        [evaluation] = server.client.evaluations.create(rows.id, "hashing").data
        asyncio.run(page.list.part.refresh())
        with open_worker(settings_of(server.home, **GIVEN)):
            server.client.evaluations.wait(evaluation, timeout_s=60, progress=False)
        asyncio.run(page.look())
        points = opened(server, FrontierPage, dataset=rows.id).frontier.part.data.data
        assert [point.evaluation for point in points] == [evaluation.id]


class TestLeaving:
    def test_one_that_comes_after_its_page_was_left_changes_nothing(self, server, scored):
        detail = HeldCall(server.client.evaluations.detail)
        client = Instead(
            server.client, evaluations=Instead(server.client.evaluations, detail=detail)
        )

        async def leave():
            page = opened(SimpleNamespace(client=client), evaluation=scored["targets"])
            await detail.until_called()
            page.close()
            page.session.param.update(page="datasets", dataset=scored["fresh"])
            detail.go_on()
            await until_done()
            return page

        page = asyncio.run(leave())
        assert (page.session.dataset, page.session.version) == (scored["fresh"], 0)
        assert page.opened is None

    def test_one_that_succeeds_after_its_page_was_left_changes_nothing(self, server, scored):
        rows = server.client.datasets.create("later", evaluation=make_rows(1, start=75))
        [one] = server.client.evaluations.create(rows.id, "hashing").data
        page = opened(server, evaluation=one.id)
        line = page.waiting
        page.close()
        page.session.param.update(page="datasets", dataset=scored["fresh"])
        with open_worker(settings_of(server.home, **GIVEN)):
            server.client.evaluations.wait(one.id, timeout_s=60, progress=False)
        asyncio.run(page.look())
        asyncio.run(line._refresh(quietly=True))
        assert (page.session.dataset, page.session.version) == (scored["fresh"], 0)
        assert page.opened is None

    def test_late_rows_leave_the_selection_elsewhere(self, server, scored):
        page = opened(server, evaluation=scored["targets"])
        page.close()
        page.session.selected = [7]
        asyncio.run(page.opened.browser.refresh())
        assert page.session.selected == [7]

    def test_the_row_that_was_read_is_selected_no_more(self, server, scored):
        page = opened(server, evaluation=scored["targets"])
        page.on_key("next", 1)
        assert page.session.selected == [page.opened.browser.opened.row]
        page.close()
        assert page.session.selected == []

    def test_another_one_has_nothing_selected(self, server, scored):
        page = opened(server, evaluation=scored["targets"])
        page.on_key("next", 1)
        page.session.evaluation = ""
        assert page.session.selected == []


class TestOpened:
    def test_the_headline_has_intervals_and_n(self, server, scored):
        page = opened(server, evaluation=scored["targets"])
        told = texts(page.__panel__())
        assert "share right" in told
        assert told.count("n = 80") >= 2
        assert "80 answers to 40 texts" in told

    def test_each_bin_opens_its_rows(self, server, scored):
        page = opened(server, evaluation=scored["targets"])
        rows = page.opened.scored.detail.reliability
        place = next(i for i, row in enumerate(rows) if row.n)
        page.opened.choose(RecordChoice(p_from=rows[place].low, p_to=rows[place].high))
        assert page.opened.browser.table.total == rows[place].n
        assert filter_from(page.session.query).p_to == rows[place].high
        told = texts(page.opened.browser.__panel__())
        assert f"{rows[place].n} of 80 scored decisions: top probability above" in told

    def test_a_mark_that_is_clicked_opens_its_rows(self, server, scored):
        page = opened(server, evaluation=scored["targets"], view="confusion")
        [pane] = page.opened.figure.select(lambda part: type(part).__name__ == "Bokeh")
        source = pane.object.renderers[0].data_source
        cell = next(i for i, count in enumerate(source.data["count"]) if count)
        source.selected.indices = [cell]
        assert page.opened.browser.table.total == source.data["count"][cell]
        chosen = page.opened.browser.chosen
        assert chosen.target == source.data["target"][cell]
        assert chosen.top == source.data["top"][cell]

    def test_rows_are_read_with_the_keys(self, server, scored):
        page = opened(server, evaluation=scored["targets"])
        assert page.on_key("next", 1)
        first = page.opened.browser.opened
        assert first.loss == max(one.loss for one in page.opened.browser.records.values())
        assert "Invoice" in texts(page.opened.browser._read)
        page.on_key("next", 1)
        assert page.opened.browser.opened != first
        page.on_key("previous", 1)
        assert page.opened.browser.opened == first
        page.on_key("close", 1)
        assert page.opened.browser.opened is None
        page.on_key("forward", 1)
        assert page.opened.browser.table.page == 1
        assert not page.on_key("undo", 1)

    def test_the_keys_go_through_the_visible_rows(self, server, scored):
        page = opened(server, evaluation=scored["targets"])
        browser = page.opened.browser
        asked = server.client.evaluations.records_page
        of_route = HeldCall(asked)

        def answer(*args, **filters):
            ask = of_route if filters.get("decision") == "route" else asked
            return ask(*args, **filters)

        browser.client = Instead(
            server.client, evaluations=Instead(server.client.evaluations, records_page=answer)
        )

        async def choose_twice():
            browser.choose(RecordChoice(decision="route"))
            await of_route.until_called()
            browser.choose(RecordChoice(decision="refund"))
            await browser.refresh()
            of_route.go_on()
            await until_done()

        asyncio.run(choose_twice())
        assert set(browser.table.rows["decision"]) == {"refund"}
        shown = browser.table.rows["place"].to_list()
        read = []
        for _ in shown:
            assert page.on_key("next", 1)
            read.append(browser.table.marked)
        assert read == shown
        assert page.on_key("previous", 1)
        assert browser.opened.decision_id == "refund"
        assert browser.table.marked == shown[-2]

    def test_records_that_are_at_hand_are_bounded(self, server, scored, monkeypatch):
        monkeypatch.setattr(record_browser, "_MOST_RECORDS", 25)
        browser = opened(server, evaluation=scored["targets"]).opened.browser
        for page in range(1, 8):
            browser.table.turn_to(page)
        assert len(browser.records) == 25
        assert set(browser.table.rows["place"]) <= set(browser.records)

    def test_a_filter_that_leaves_nothing_says_so_and_can_be_cleared(self, server, scored):
        query = query_of(RecordChoice(slice_by="metadata.tier", slice="gold", p_to=0.01))
        page = opened(server, evaluation=scored["targets"], query=query)
        browser = page.opened.browser
        assert browser.table.total == 0
        assert "No scored decision matches" in texts(browser.__panel__())
        [clear] = named(browser.__panel__(), "Clear the filter")
        clear.clicks += 1
        assert browser.table.total == 80
        assert page.session.query == ""

    def test_the_fields_choose_too(self, server, scored):
        browser = opened(server, evaluation=scored["targets"]).opened.browser
        browser.wrong.value = True
        browser.decision.value = "refund"
        wrong = server.client.evaluations.records(scored["targets"], wrong=True, decision="refund")
        assert browser.table.total == len(wrong)
        assert browser.chosen.words() == "decision refund, answered wrong"

    @pytest.mark.parametrize("view", ["reliability", "confusion", "outcomes", "slices"])
    def test_every_section_is_drawn(self, server, scored, view):
        page = opened(server, evaluation=scored["targets"], view=view)
        assert page.opened.section.value == view
        assert len(page.opened.figure) > 1
        assert page.parts[0].state == "shown"

    def test_switching_is_kept_in_the_address(self, server, scored):
        page = opened(server, evaluation=scored["targets"])
        page.opened.section.value = "slices"
        assert page.session.view == "slices"
        told = texts(page.opened.figure)
        assert "slices by" in told
        assert "stands out by chance" in told

    def test_one_that_has_not_succeeded_has_no_figures_yet(self, server, scored):
        rows = server.client.datasets.create("waiting", evaluation=make_rows(1, start=70))
        [one] = server.client.evaluations.create(rows.id, "hashing").data
        page = opened(server, evaluation=one.id)
        assert "Figures are here once it has succeeded." in texts(page.__panel__())
        with open_worker(settings_of(server.home, **GIVEN)):
            server.client.evaluations.wait(one.id, timeout_s=60, progress=False)
        asyncio.run(page.look())
        assert page.opened is not None

    def test_one_that_there_is_not_is_a_failure_of_its_part(self, server, scored):
        page = opened(server, evaluation="eval_none")
        assert page.parts[0].state == "failed"
        assert "not_found" in texts(page.__panel__())

    def test_rewards_have_no_reliability_and_no_costs(self, server, scored):
        page = opened(server, evaluation=scored["rewards"], view="thresholds")
        assert set(page.opened.section.options.values()) == {"slices", "thresholds"}
        assert "Costs need targets" in texts(page.opened.figure)
        assert page.parts[0].state == "shown"

    def test_the_figures_go_with_a_deleted_dataset_and_the_page_says_so(self, server):
        client = server.client
        rows = client.datasets.create("gone", evaluation=make_rows(2, start=80))
        with open_worker(settings_of(server.home, **GIVEN)):
            [one] = client.evaluations.create(rows.id, "hashing").data
            client.evaluations.wait(one, timeout_s=60, progress=False)
        client.datasets.delete(rows.id)
        page = opened(server, evaluation=one.id)
        assert (page.parts[0].state, page.opened) == ("failed", None)
        assert "was deleted; its rows are gone" in texts(page.__panel__())

    def test_how_far_people_agree_is_beside_how_right_it_is(self, server, scored):
        page = opened(server, evaluation=scored["targets"])
        assert "people agree" not in texts(page.__panel__()).lower()
        label_apart(server.client, scored["dataset"], n_rows=10, n_agreed=8)
        note = "People agree on 80 % [44, 97] of 10 rows that two labelled apart."
        for view in ("reliability", "slices"):
            page = opened(server, evaluation=scored["targets"], view=view)
            text = texts(page.__panel__())
            assert note in text
            assert 'people agree on</div><div class="figure">80 %' in text
            charts = [each.object for each in page.opened.figure.select(pn.pane.Bokeh)]
            labels = [
                str(item.label)
                for each in charts
                for legend in each.legend
                for item in legend.items
            ]
            assert sum("people agree on 80 %" in label for label in labels) == 1
        assert "people agree on 80 %" in page.opened._report()
        other = opened(server, evaluation=scored["rewards"])
        assert "people agree" not in texts(other.__panel__()).lower()


class TestWhatIf:
    @pytest.fixture
    def what_if(self, server, scored):
        return opened(server, evaluation=scored["targets"], view="thresholds").opened.what_if

    def test_a_threshold_is_tried_on_the_scored_decisions(self, server, scored, what_if):
        what_if.threshold.value = 0.9
        asyncio.run(what_if.refresh())
        report = server.client.evaluations.try_policy(
            scored["targets"], what_if.decision.value, abstain_below=0.9
        )
        told = texts(what_if.report)
        assert "Acted on" in told
        assert f"{report.coverage.value:.3f}" in told

    def test_costs_of_a_binary_decision(self, what_if):
        what_if.decision.value = "refund"
        what_if.false_no.value = 4.0
        assert what_if.curve.calibrated_threshold == pytest.approx(0.2)
        what_if.yes_from.value = 0.3
        what_if._show_costs()
        told = texts(what_if.yes)
        assert "from 0.30 on" in told
        assert "Precision" in told

    def test_shares_have_their_intervals_and_totals(self, server, scored, what_if):
        for one in server.client.evaluations.detail(scored["targets"]).decisions:
            what_if.decision.value = one.decision_id
            points = one.coverage_curve
            [table] = what_if.coverage.select(MarkTable)
            place = next(i for i, point in enumerate(points) if 0 < point.n < 40)
            assert table.columns == ["abstain below", "share answered", "share right of those"]
            assert table.rows[place][1] == measure_text(share_of(points[place].n, 40))
            assert table.rows[place][2] == measure_text(points[place].accuracy)
            assert "n = 40)" in table.rows[place][1]
            told = texts(what_if.coverage)
            assert f"Of the 40 of {one.decision_id}" in told
            assert "take decisions as independent" in told
        what_if.decision.value = "route"
        [table] = what_if.costs.select(MarkTable)
        assert table.rows[0][2] == measure_text(share_of(40, 40))

    def test_a_table_of_costs_that_cannot_be_read_says_how_it_should_be(self, what_if):
        what_if.decision.value = "route"
        what_if.matrix.value = "{"
        assert "The costs are not JSON" in texts(what_if.costs)
        what_if.matrix.value = json.dumps({"pay": {"billing": 1}})
        asyncio.run(what_if.refresh())
        assert "invalid_request" in texts(what_if.report)


class TestFiles:
    def test_the_decisions_that_are_looked_at_are_a_table(self, server, scored):
        page = opened(server, evaluation=scored["targets"])
        exports = page.opened.browser.exports.downloads
        frame = pl.read_parquet(asyncio.run(exports["parquet"].get()))
        assert (frame.height, frame["loss"].is_sorted(descending=True)) == (80, True)
        page.opened.browser.choose(RecordChoice(wrong=True, order="row"))
        wrong = pl.read_csv(asyncio.run(exports["csv"].get()))
        assert set(wrong["accuracy"]) == {0.0}
        assert wrong["row"].is_sorted()
        assert exports["csv"].button.filename == f"{scored['targets']}.csv"

    def test_the_json_report_is_the_detail(self, server, scored):
        page = opened(server, evaluation=scored["targets"])
        made = asyncio.run(page.opened.downloads["Report (JSON)"].get())
        held = json.loads(made.getvalue())
        assert held["evaluation"]["id"] == scored["targets"]
        assert held["detail"]["overall"]["n"] == 80

    @pytest.mark.parametrize("which", ["targets", "rewards"])
    def test_the_html_report_names_no_other_place(self, server, scored, which):
        page = opened(server, evaluation=scored[which])
        made = asyncio.run(page.opened.downloads["Report (HTML)"].get()).getvalue().decode()
        assert "<script src" not in made
        assert "<link" not in made
        assert "n = 80" in made or which == "rewards"
        assert "Invoice" not in made


class TestSlices:
    def test_fewer_than_ten_decisions_have_no_figure(self):
        row = ForestRow("tier = gold", 1.0, 0.44, 1.0, 9)
        assert slice_text(row) == "too few (n = 9)"
        assert slice_text(replace(row, n=10)) == "1.000 (0.440 to 1.000, n = 10)"

    def test_the_worst_that_may_be_is_first_and_few_are_last(self, server, scored):
        detail = server.client.evaluations.detail(scored["targets"])
        rows = slice_rows("accuracy", detail.slices, detail.decisions)
        large = [row for row in rows if not row.is_small]
        assert [row.is_small for row in rows] == sorted(row.is_small for row in rows)
        assert [row.low for row in large] == sorted(row.low for row in large)
        worst = slice_rows("loss", detail.slices, detail.decisions)
        large = [row.high for row in worst if not row.is_small]
        assert large == sorted(large, reverse=True)


@pytest.mark.parametrize("query", ["", "{", "[]", '{"other": 1}', '{"records": {"p_to": "x"}}'])
def test_an_address_that_cannot_be_read_chooses_everything(query):
    assert filter_from(query) == RecordChoice()


def test_a_choice_survives_the_address():
    chosen = RecordChoice(decision="d", wrong=True, p_from=0.1, slice_by="kind", slice="single")
    assert filter_from(query_of(chosen)) == chosen
    assert query_of(RecordChoice()) == ""
