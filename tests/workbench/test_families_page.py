"""The families page without a browser: its states, its requests, and its refusals."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

pytest.importorskip("panel", reason="needs the workbench extra")

from steelyard.client.failures import ServerUnreachableError
from steelyard.errors import (
    FamilyChangedError,
    InvalidNameError,
    KeyScopeError,
    LiveLimitError,
    PriceChangedError,
    RollbackChangedError,
    ServedChangedError,
    WarmLimitError,
)
from steelyard.evaluations.wire import EvaluationRecord
from steelyard.families.fine_tune_wire import FineTuneEstimate
from steelyard.families.wire import FamilyList
from steelyard_workbench.kit.session import Session
from steelyard_workbench.pages.families.gate_card import HeldOutRequest
from steelyard_workbench.pages.families.held_out import HeldOutRows
from steelyard_workbench.pages.families.page import FamiliesPage
from steelyard_workbench.parts.families.labels import choices_of
from support.browser.shown_parts import buttons, choices, choose, lines, texts
from support.families.family_data import deleted, gate, model
from support.families.told_families import (
    ESTIMATE,
    family_job,
    growth,
    in_turn,
    make_client,
    record,
    told_dataset,
    told_evaluation,
    told_family,
    told_job,
)

#: Seconds that a thread waits for what is sure to come.
SOON = 30
SCOPE = KeyScopeError("The key may only read; use one of full scope.")


def open_page(client: Any, **session: Any) -> FamiliesPage:
    page = FamiliesPage(Session(client, page="families", **session))
    page.open()
    if page.one is not None and page.one.details is not None:
        page.one.details.open()
    return page


def open_router(client: Any = None, **fields: Any) -> tuple[FamiliesPage, Any]:
    """The page of a family, by its fields."""
    given = {"continue": growth(), "jobs": [family_job(3), family_job(2), family_job(1)], **fields}
    client = client or make_client(families_get=lambda name: told_family(**given))
    return open_page(client, family="router"), client


def run(work: Any) -> None:
    asyncio.run(work)


def test_no_families_explains_one():
    page = open_page(make_client(families_list=lambda: FamilyList(data=[])))
    assert "No model lines yet" in texts(page.__panel__())


def test_the_list_has_served_models_and_waits():
    page = open_page(make_client())
    said = texts(page.__panel__())
    row = lines(page, "Model lines").rows[0]
    assert row[:3] == ["router", "router@2", "78 % → 87 % of 240 answers"]
    assert "It moves to router@3 by itself, and waits: the limit of models that answer" in said
    assert "(live_limit)" in said


def test_a_search_that_finds_nothing_offers_to_clear_it():
    page = open_page(make_client())
    (search,) = page.__panel__().select(lambda w: getattr(w, "label", "") == "Find by name")
    search.value_input = "zebra"
    assert "0 of 1 model lines have “zebra” in their name." in texts(page.__panel__())
    buttons(page.__panel__())["Clear the search"].clicks += 1
    assert [row[0] for row in lines(page, "Model lines").rows] == ["router"]


def test_a_part_that_fails_leaves_the_other():
    client = make_client(families_list=in_turn(ServerUnreachableError("Nobody answers.")))
    page = open_page(client)
    assert page.families.state == "failed"
    assert page.datasets.state == "shown"


def test_no_dataset_leads_to_the_datasets():
    alone = told_dataset(evaluation_only=True)
    page = open_page(make_client(datasets_list=lambda **k: SimpleNamespace(data=[alone])))
    buttons(page.__panel__())["Import a dataset"].clicks += 1
    assert page.session.page == "datasets"


def test_a_family_starts_as_it_was_estimated_and_no_dearer():
    client = make_client()
    page = open_page(client)
    page.form.family.value = "ant"
    page.form.rank.value = 4
    assert "evidence" in page.form.heads.options.values()
    page.form.heads.value = "cheapest"
    run(page.form.estimate())
    assert "0.25 USD, the minimum" in texts(page.form.__panel__())
    run(page.form.start())
    ((_, sent),) = client.families.of("create")
    assert sent["max_price_usd"] == "0.25"
    asked = {"lora_rank": 4, "heads": "cheapest", "first": "words", "seed": 7}
    assert sent["hyperparameters"] == asked
    assert (sent["family"], sent["dataset_version"], sent["method"]) == ("ant", 3, "sft")
    assert (page.session.family, page.session.job) == ("router", "")
    # Words do not wait for themselves, and may be left out.
    for field, value in (("heads", "words"), ("words_first", False)):
        page = open_page(make_client())
        getattr(page.form, field).value = value
        assert "first" not in page.form._training()


def test_who_comes_from_a_dataset_finds_the_form_first_with_that_dataset():
    client = make_client(datasets_get=lambda one: told_dataset(id=one, name="far down"))
    page = open_page(client, view="start", dataset="ds_500")
    assert page.form.dataset.value == "ds_500"
    assert page.parts[0] is page.families
    assert page.__panel__().objects.index(page.families.__panel__()) == len(page.__panel__()) - 1


def test_an_estimate_of_other_fields_is_taken_back():
    page = open_page(make_client())
    run(page.form.estimate())
    page.form.family.value = "bee"
    assert not page.form.place.objects
    run(page.form.start())
    assert not page.client.families.of("create")


async def asked(in_thread: threading.Event) -> None:
    """Wait until a call waits in its thread."""
    assert await asyncio.to_thread(in_thread.wait, SOON)


def test_an_estimate_that_comes_after_a_field_changed_offers_nothing():
    began, go_on = threading.Event(), threading.Event()

    def estimate(**_: Any) -> FineTuneEstimate:
        began.set()
        go_on.wait(SOON)
        return msgspec.convert(ESTIMATE, FineTuneEstimate)

    page = open_page(make_client(families_estimate=estimate))

    async def change_meanwhile() -> None:
        estimated = asyncio.create_task(page.form.estimate())
        await asked(began)
        page.form.family.value = "bee"
        go_on.set()
        await estimated

    run(change_meanwhile())
    assert not page.form.place.objects
    run(page.form.start())
    assert not page.client.families.of("create")


def test_a_name_that_cannot_be_is_refused_in_place():
    page = open_page(make_client(families_estimate=in_turn(InvalidNameError("No such name."))))
    run(page.form.estimate())
    assert "invalid_name" in texts(page.form.__panel__())


def test_one_family_shows_its_line_and_the_gate_of_the_newest():
    page, _ = open_router()
    said = texts(page.__panel__())
    assert "router@3" in said
    assert "deleted" in said
    assert "✓ passed" in said
    assert "Passed the check" in said
    assert "Checked against the model it was trained from." in said
    assert "too few new evaluation rows" not in said


def test_a_family_without_models_says_that_the_first_has_yet_to_join():
    waiting = [family_job(1, status="queued", outcome=None, output_model=None)]
    page = open_page(
        make_client(
            families_get=lambda name: told_family(
                models=[], served=None, latest=None, move=None, jobs=waiting
            ),
            jobs_get=lambda job_id: told_job(id=job_id, status="queued", metrics=None),
        ),
        family="router",
    )
    said = texts(page.__panel__())
    assert "No models yet." in said
    assert "It has not been judged yet." in said


def test_a_fine_tune_that_cannot_be_had_leaves_the_line():
    client = make_client(
        families_get=lambda name: told_family(jobs=[family_job(3)]),
        jobs_get=in_turn(ServerUnreachableError("Nobody answers.")),
    )
    page = open_page(client, family="router")
    said = texts(page.__panel__())
    assert "server_unreachable" in said
    assert "router@3" in said


def test_another_fine_tune_is_chosen_and_is_in_the_address():
    page, client = open_router()
    (select,) = page.__panel__().select(lambda w: getattr(w, "label", "") == "Look at")
    select.value = "ftj_2"
    assert page.session.job == "ftj_2"
    assert client.jobs.of("get")[-1] == (("ftj_2",), {})
    assert "Keep router@2 warm…" in buttons(page.__panel__())


def test_disabled_buttons_have_reasons_beside_them():
    page, _ = open_router()
    said = texts(page.__panel__())
    assert "No row of its dataset was added or corrected since its last fine-tune." in said
    assert "It is on: switch it off first." in said
    assert "It is the latest model" in said
    assert choices(page.__panel__())["Continue…"] is None


def test_too_few_evaluation_decisions_tell_how_many_there_are():
    page, _ = open_router(**{"continue": growth("not_enough_evaluation_data")})
    assert "12 decisions for the check, 20 needed" in "".join(
        str(p.object) for p in page.__panel__().select(lambda p: hasattr(p, "object"))
    )


def test_continuing_asks_with_its_fee_and_sends_the_visible_state():
    page, client = open_router(**{"continue": growth("new_data")})
    run(page.one.ask_continue())
    assert "0.25 USD" in texts(page.one.dialog.dialog)
    run(page.one.dialog.confirm())
    ((_, sent),) = client.families.of("continue_")
    assert sent == {
        "hyperparameters": {"seed": 7},
        "latest": "ft-ftj_3",
        "dataset_version": 3,
        "max_price_usd": "0.25",
    }


def test_switching_off_asks_and_sends_the_served_model():
    page, client = open_router()
    run(page.one.ask_switch_off())
    run(page.one.dialog.confirm())
    (((name, on), sent),) = client.families.of("switch")
    assert (name, on, sent["served"]) == ("router", False, "ft-ftj_2")
    assert "router is off." in texts(page.one.notes)


def test_a_confirmation_is_for_the_family_of_its_question():
    empty_line = told_family(models=[], served=None, latest=None, move=None, jobs=[])
    joined = told_family(jobs=[family_job(3)])

    def open_then_change() -> tuple[FamiliesPage, Any]:
        client = make_client(families_get=in_turn(empty_line, joined))
        return open_page(client, family="router"), client

    page, client = open_then_change()
    run(page.one.ask_delete())
    run(page.one.look())
    assert page.one.family.latest is not None
    page.one.dialog.entry.value_input = "router"
    run(page.one.dialog.confirm())
    ((_, sent),) = client.families.of("delete")
    assert sent["latest"] is None

    page, client = open_then_change()
    run(page.one.ask_switch_off())
    run(page.one.look())
    run(page.one.dialog.confirm())
    ((_, sent),) = client.families.of("switch")
    assert sent["served"] is None


def test_past_the_live_limit_the_person_chooses_a_model_to_switch_off():
    held = [
        {"model": "ant@1", "on": True, "serves": ["ant"], "used_at": None},
        {"model": "bee@2", "on": False, "serves": ["bee"], "used_at": 1.0},
    ]
    refused = LiveLimitError("2 models answer.", details=[{"answering": held}])
    client = make_client(
        families_get=lambda name: told_family(switched_on=False, jobs=[family_job(3)]),
        families_switch=in_turn(refused, told_family()),
    )
    page, _ = open_router(client)
    run(page.one.switch(True))
    (boxes,) = page.one.dialog.dialog.select(lambda w: getattr(w, "label", "") == "Switch off")
    boxes.value = [next(iter(boxes.options.values()))]
    run(page.one.dialog.confirm())
    assert client.families.of("switch")[-1][1]["switch_off"] == ["ant@1", "ant"]
    assert not page.one.dialog.dialog.open


def test_keeping_warm_asks_at_the_price_and_holds_no_more():
    dearer = PriceChangedError("An hour costs 0.5 USD.", details=[{"price_usd": "0.5"}])
    full = WarmLimitError(
        "1 model is kept warm.",
        details=[
            {"warm": [{"model": "ant@1", "keep_warm": True, "families": [], "used_at": None}]}
        ],
    )
    client = make_client(families_keep_warm=in_turn(dearer, full, told_family()))
    page, _ = open_router(client)
    run(page.one.keep_warm())
    assert "0.5 USD" in texts(page.one.dialog.dialog)
    run(page.one.dialog.confirm())
    (boxes,) = page.one.dialog.dialog.select(lambda w: getattr(w, "label", "") == "Switch off")
    boxes.value = list(boxes.options.values())
    run(page.one.dialog.confirm())
    first, second, third = (sent for _, sent in client.families.of("keep_warm"))
    assert first["max_price_usd"] == "0"
    assert second["max_price_usd"] == third["max_price_usd"] == "0.5"
    assert third["switch_off"] == ["ant@1"]


def test_rolling_back_lists_the_discarded_models_and_waits_for_the_name():
    plan = RollbackChangedError(
        "Confirm.", details=[{"discard": ["router@3"], "cancel": ["ftj_4"]}]
    )
    client = make_client(families_roll_back=in_turn(plan, told_family()))
    page, _ = open_router(client)
    run(page.one.ask_roll_back("router@2"))
    dialog = page.one.dialog
    said = texts(dialog.dialog)
    assert "discarded for good:** router@3" in said
    assert "cancelled:** ftj_4" in said
    assert dialog.button.disabled
    run(dialog.confirm())
    assert len(client.families.of("roll_back")) == 1
    dialog.entry.value_input = "router@2"
    assert not dialog.button.disabled
    run(dialog.confirm())
    args, sent = client.families.of("roll_back")[-1]
    assert args == ("router", "router@2", ["router@3"])
    assert sent["served"] == "ft-ftj_2"
    assert not dialog.dialog.open


@pytest.mark.parametrize("error", [ServedChangedError, FamilyChangedError, RollbackChangedError])
def test_a_family_that_changed_meanwhile_is_shown_anew_with_the_changes(error):
    third = model(3)
    before = told_family(jobs=[family_job(3)])
    after = told_family(jobs=[family_job(3)], served=third, move=None)
    client = make_client(
        families_get=in_turn(before, after), families_switch=in_turn(error("It changed."))
    )
    page = open_page(client, family="router")
    run(page.one.ask_switch_off())
    run(page.one.dialog.confirm())
    said = texts(page.one.notes)
    assert "changed meanwhile; nothing was done" in said
    assert "it served router@2, and is now router@3" in said


def test_a_read_key_disables_changes():
    client = make_client(
        families_get=lambda name: told_family(jobs=[family_job(3)]),
        families_keep_warm=in_turn(SCOPE),
    )
    page = open_page(client, family="router")
    run(page.one.keep_warm())
    assert "Not allowed." in texts(page.one.notes)
    assert "The key may only read" in texts(page.one.loaded.__panel__())
    assert buttons(page.__panel__())["Switch off"].disabled


def test_a_model_has_a_switch_and_a_guard_of_its_own():
    page, client = open_router()
    second = told_family().models[1]
    run(page.one.switch_model(second, on=True))
    ((args, sent),) = client.models.of("switch")
    assert args == ("router@2", True)
    assert sent["adapter"] == "ft-ftj_2"
    run(page.one.ask_delete_model(second))
    page.one.dialog.entry.value_input = "router@2"
    run(page.one.dialog.confirm())
    assert client.models.of("delete") == [(("router@2",), {"adapter": "ft-ftj_2"})]


def test_deleting_a_family_sends_its_guards_and_leads_back_to_the_list():
    off = told_family(switched_on=False, jobs=[family_job(3)])
    client = make_client(families_get=lambda name: off)
    page = open_page(client, family="router")
    run(page.one.ask_delete())
    page.one.dialog.entry.value_input = "router"
    run(page.one.dialog.confirm())
    ((args, sent),) = client.families.of("delete")
    assert (args, sent) == (("router",), {"dataset_id": "ds_1", "latest": "ft-ftj_3"})
    assert page.session.family == ""
    assert page.one is None


def test_an_inconclusive_gate_is_not_red_and_names_the_settling_step():
    few = gate(passed=False, reasons=["too_few_evaluation_decisions"], groups={}, reader="nli")
    page = open_page(
        make_client(
            families_get=lambda name: told_family(
                jobs=[family_job(4, outcome="gate_failed", output_model=None)]
            ),
            jobs_get=lambda job_id: told_job(
                id=job_id, metrics={"gate": few}, outcome="gate_failed"
            ),
        ),
        family="router",
    )
    said = texts(page.__panel__())
    assert "Nothing is proven yet" in said
    assert "needs 20 new decisions for the check and had 0" in said
    assert "reads nli" in said
    alerts = page.__panel__().select(lambda one: getattr(one, "severity", "") == "error")
    assert not alerts


def test_the_rows_behind_a_gate_come_with_their_contexts_and_filters():
    before = [record("a", "billing", 0.9), record("b", "shipping", 0.3)]
    after = [record("a", "billing", 0.2), record("b", "shipping", 0.8)]
    groups = {"adapted": after, "parent": before}
    client = make_client(
        families_get=lambda name: told_family(jobs=[family_job(3), family_job(2)]),
        jobs_get=lambda job_id: told_job(
            id=job_id, dataset_evaluation=msgspec.to_builtins(told_evaluation(status="succeeded"))
        ),
        jobs_records=lambda job_id, group="adapted": (
            [record("b", "shipping", 0.5)] if job_id == "ftj_2" else groups[group]
        ),
        evaluations_records=lambda *a, contexts, context: [
            msgspec.convert(
                {**msgspec.to_builtins(one), "row": 0, "context": f"Text {one.context_sha256}"},
                EvaluationRecord,
            )
            for one in after
            if one.context_sha256 in contexts
        ],
    )
    page = open_page(client, family="router")
    run(page.one.show_rows(HeldOutRequest(flip="broken")))
    rows = page.one.rows
    assert rows.table.rows["context"].to_list() == ["Text a"]
    rows.filters["group"].value = "earlier"
    assert "0 of 2 rows" in texts(rows.none)
    buttons(rows.none)["Clear the filter"].clicks += 1
    assert rows.table.total == 2
    rows.number.value = "1"
    assert "Text b" in texts(rows.row)
    assert "Send to review" in buttons(rows.row)


def open_slow_records() -> tuple[FamiliesPage, threading.Event, threading.Event]:
    """The page of a family the records of whose third fine-tune come once they may."""
    opened, began, go_on = (threading.Event() for _ in range(3))

    def records(job_id: str, **_: Any) -> list[Any]:
        if job_id == "ftj_3" and opened.is_set():
            began.set()
            go_on.wait(SOON)
        return [record(f"of {job_id}", "billing", 0.9)]

    given = told_family(jobs=[family_job(3), family_job(2)])
    client = make_client(
        families_get=lambda name: given,
        jobs_records=records,
        jobs_get=lambda job_id: told_job(id=job_id, metrics={"gate": gate()}),
    )
    page = open_page(client, family="router")  # which reads the rows that changed
    opened.set()
    return page, began, go_on


def test_rows_that_come_once_another_model_is_chosen_are_not_under_its_gate():
    page, began, go_on = open_slow_records()
    one = page.one
    second = choices_of(one.family)[1]

    async def choose_meanwhile() -> None:
        rows = asyncio.create_task(one.show_rows(HeldOutRequest()))
        await asked(began)
        one.choose(second)
        go_on.set()
        await rows
        await one.loaded.refresh(quietly=True)

    run(choose_meanwhile())
    assert one.loaded.data.job.id == "ftj_2"
    assert not one.rows_place.objects
    assert one.rows is None


def test_rows_asked_for_later_stay_when_those_before_come():
    page, began, go_on = open_slow_records()
    one = page.one

    async def ask_twice() -> HeldOutRows | None:
        first = asyncio.create_task(one.show_rows(HeldOutRequest(flip="broken")))
        await asked(began)
        page.session.job = "ftj_2"
        await one.loaded.refresh(quietly=True)
        await one.show_rows(HeldOutRequest())
        shown = one.rows
        go_on.set()
        await first
        return shown

    shown = asyncio.run(ask_twice())
    assert shown is not None
    assert one.rows is shown
    assert one.rows.frame["context_sha256"].to_list() == ["of ftj_2"]


def test_rows_go_with_the_gate_that_they_were_behind():
    older = told_family(jobs=[family_job(2)])
    newer = told_family(jobs=[family_job(3), family_job(2)])
    client = make_client(
        families_get=in_turn(older, newer),
        jobs_records=lambda job_id, **_: [record(f"of {job_id}", "billing", 0.9)],
        jobs_get=lambda job_id: told_job(id=job_id, metrics={"gate": gate()}),
    )
    page = open_page(client, family="router")
    run(page.one.show_rows(HeldOutRequest()))
    assert page.one.rows is not None
    run(page.one.look())
    assert page.one.loaded.data.job.id == "ftj_3"
    assert not page.one.rows_place.objects


def test_a_link_opens_the_newest_version_without_the_filter_of_another_dataset():
    page, _ = open_router()
    page.session.param.update(version=2, query='{"text": "of another"}')
    choose(page.__panel__(), "Open its dataset")
    said = page.session
    assert (said.page, said.dataset, said.version, said.query) == ("datasets", "ds_1", 0, "")


def test_the_evaluation_of_a_fine_tune_is_opened_without_the_section_of_another():
    held = told_evaluation(status="succeeded", training_job_id="ftj_3")
    client = make_client(
        families_get=lambda name: told_family(**{"continue": growth(), "jobs": [family_job(3)]}),
        jobs_get=lambda job_id: told_job(id=job_id, dataset_evaluation=msgspec.to_builtins(held)),
    )
    page = open_page(client, family="router", query="{}", view="slices")
    buttons(page.__panel__())["Open its evaluation"].clicks += 1
    assert (page.session.page, page.session.evaluation) == ("evaluations", "eval_1")
    assert (page.session.query, page.session.view) == ("", "")


def progress_at(step: int) -> dict[str, Any]:
    return {"step": step, "steps": 9, "loss": None, "phase": "calibration"}


def test_a_look_that_finds_only_progress_leaves_the_page_as_it_is():
    running = {"status": "running", "outcome": None, "output_model": None, "metrics": None}
    used = [deleted(1), model(2, used_at=1.0), model(3, used_at=2.0)]
    client = make_client(
        families_get=in_turn(
            told_family(jobs=[family_job(3)]), told_family(jobs=[family_job(3)], models=used)
        ),
        jobs_get=in_turn(
            told_job(id="ftj_3", **running, updated_at=1.0, progress=progress_at(1)),
            told_job(id="ftj_3", **running, updated_at=2.0, progress=progress_at(2)),
            told_job(id="ftj_3"),
        ),
    )
    page = open_page(client, family="router")
    shown = page.one.loaded.__panel__()[0]
    run(page.one.look())
    assert page.one.loaded.__panel__()[0] is shown
    run(page.one.look())
    assert page.one.loaded.__panel__()[0] is not shown


def test_looking_again_shows_only_changes():
    same = told_family(jobs=[family_job(3)])
    later_on = told_family(jobs=[family_job(3)], models=[deleted(1), deleted(2), model(3)])
    page = open_page(make_client(families_get=in_turn(same, same, later_on)), family="router")
    shown = page.one.loaded.__panel__()[0]
    run(page.one.look())
    assert page.one.loaded.__panel__()[0] is shown
    run(page.one.look())
    assert page.one.loaded.__panel__()[0] is not shown


def test_leaving_the_page_stops_its_looks():
    page, _ = open_router()
    page.close()
    page.session.family = ""
    assert page.one is not None
    assert not page._poller.is_running
