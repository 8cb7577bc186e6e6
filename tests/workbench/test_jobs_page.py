"""The jobs page without a browser: running jobs and their speed, ended ones, cancelling, every state."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

pytest.importorskip("panel", reason="needs the workbench extra")

from steelyard.client.failures import ServerUnreachableError
from steelyard.errors import KeyScopeError
from steelyard.wire.jobs import UNFINISHED
from steelyard_workbench.kit.session import Session
from steelyard_workbench.pages.jobs.page import JobsPage
from steelyard_workbench.pages.jobs.progress import Track, duration, progress_text
from support.browser.shown_parts import buttons, lines, named, texts
from support.families.told_families import in_turn, make_client, told_evaluation, told_job, told_map
from support.servers.held_calls import HeldCall, until_done


def running(step: int, **fields: Any) -> Any:
    """A fine-tune at a step."""
    progress = {"step": step, "steps": 200, "loss": 1.0 - step / 400, "phase": "heads"}
    return told_job(
        id="ftj_4",
        status="running",
        outcome=None,
        output_model=None,
        metrics=None,
        curve=None,
        progress=progress,
        **fields,
    )


def listed(*jobs: Any) -> Any:
    """Return a list of jobs of all kinds."""
    return lambda **_: iter([job.summary for job in jobs])


def open_page(client: Any, **session: Any) -> JobsPage:
    page = JobsPage(Session(client, page="jobs", **session))
    page.open()
    return page


def run(work: Any) -> None:
    asyncio.run(work)


def test_no_jobs_explains_one_and_how_to_start_it():
    page = open_page(make_client(jobs_all=lambda **k: iter([])))
    assert "No jobs yet" in texts(page.__panel__())
    buttons(page.__panel__())["Start a model line"].clicks += 1
    assert page.session.page == "families"


def test_running_jobs_have_progress_and_ended_ones_an_outcome():
    failed = told_job(outcome="gate_failed", reason="Why.")
    page = open_page(make_client(jobs_all=listed(running(40), told_evaluation(), failed)))
    said = texts(page.__panel__())
    assert "running, learning the answers: 20 %" in said
    assert "running, scoring: 50 of 200 rows" in said
    assert "check not passed: Why." in said


def test_one_kind_is_shown_alone():
    page = open_page(make_client(jobs_all=listed(told_job(), told_evaluation())))
    assert [row[0] for row in lines(page, "Ended jobs").rows] == ["fine-tune of router"]
    named(page.__panel__(), "Show")[0].value = "evaluation"
    assert "evaluation of hashing on version 3" in buttons(page.__panel__())
    assert "joined" not in texts(page.__panel__())


def test_a_server_that_is_gone_fails_the_whole():
    page = open_page(make_client(jobs_all=in_turn(ServerUnreachableError("Nobody answers."))))
    assert page.listed.state == "failed"


def test_another_look_moves_the_rows_that_are_there():
    steps = iter((40, 60))
    page = open_page(make_client(jobs_all=lambda **k: iter([running(next(steps)).summary])))
    (row,) = page.rows.values()
    run(page.look())
    assert page.rows["ftj_4"] is row
    assert "30 %" in row.text
    assert page.client.jobs.of("all")[-1][1]["status"] == UNFINISHED


def test_jobs_that_ended_meanwhile_move_to_the_ended():
    answers = iter((running(40), [], told_job(id="ftj_4")))
    page = open_page(
        make_client(jobs_all=lambda **k: iter([one.summary] if (one := next(answers)) else []))
    )
    run(page.look())
    assert not page.rows
    assert "made a model" in texts(page.__panel__())


def test_a_look_at_an_absent_server_leaves_the_list():
    client = make_client(jobs_all=in_turn(listed(running(40)), ServerUnreachableError("Nobody.")))
    page = open_page(client)
    run(page.look())
    assert "ftj_4" in page.rows


def test_cancelling_asks_first():
    client = make_client(jobs_all=listed(running(40)))
    page = open_page(client)
    buttons(page.__panel__())["Cancel…"].clicks += 1
    assert not client.jobs.of("cancel")
    assert "the fee is refunded" in texts(page.dialog.dialog)
    run(page.dialog.confirm())
    assert client.jobs.of("cancel") == [(("ftj_4",), {})]


def test_a_map_comes_with_its_progress_is_cancelled_and_opened():
    steps = iter((90, 180, 180))
    failed = told_map(id="map_0", status="failed", progress=None, error="No model.")

    def look(**_):
        now = {"phase": "laying_out", "step": next(steps), "steps": 450}
        maps = (told_map(progress=now).summary, failed.summary)
        return iter([msgspec.structs.replace(one, dataset="tickets") for one in maps])

    client = make_client(jobs_all=look)
    page = open_page(client)
    said = texts(page.__panel__())
    assert "running, laying out: 90 of 450 iterations" in said
    assert "failed: No model." in said
    run(page.look())
    assert "180 of 450 iterations" in page.rows["map_1"].text
    buttons(page.__panel__())["Cancel…"].clicks += 1
    assert "stored for a day" in texts(page.dialog.dialog)
    run(page.dialog.confirm())
    assert client.jobs.of("cancel") == [(("map_1",), {})]
    lines(page, "Ended jobs").press(0)
    opened = page.session
    assert (opened.page, opened.dataset, opened.version) == ("map", "ds_1", 2)


def test_a_key_that_may_only_read_disables_cancelling():
    client = make_client(
        jobs_all=listed(running(40)),
        jobs_cancel=in_turn(KeyScopeError("The key may only read.")),
    )
    page = open_page(client)
    run(page.ask_cancel(running(40).summary))
    run(page.dialog.confirm())
    assert "Not allowed." in texts(page.dialog.dialog)
    assert "The key may only read." in texts(page.__panel__())


def test_a_running_fine_tune_draws_its_loss_as_it_goes():
    steps = iter((40, 60, 80))
    client = make_client(jobs_all=listed(running(40)), jobs_get=lambda job_id: running(next(steps)))
    page = open_page(client, job="ftj_4")
    detail = page.detail
    run(page.look())
    assert page.detail is detail
    assert detail.losses == [(40, 0.9), (60, 0.85)]


def test_heads_are_a_point_each_and_lora_is_a_curve():
    losses = [(10, 0.9), (20, 0.9), (30, 1.4), (40, 1.4)]
    curve = [{"step": at, "loss": loss, "learning_rate": 0.0} for at, loss in losses]
    for rank, drawn, title in ((0, [(10, 0.9), (30, 1.4)], "each head"), (8, losses, "Training")):
        job = told_job(curve=curve)
        job = msgspec.structs.replace(
            job, hyperparameters=msgspec.structs.replace(job.hyperparameters, lora_rank=rank)
        )
        page = open_page(make_client(jobs_get=lambda _, job=job: job), job="ftj_3")
        assert page.detail.losses == drawn
        [shown] = page.detail.curve
        assert title in shown.object.title.text
        assert not page.detail.bar.visible


def test_one_that_succeeded_draws_its_curve_and_links_to_its_gate():
    page = open_page(make_client(), job="ftj_3")
    assert page.detail.losses == [(10, 1.2), (200, 0.3)]
    buttons(page.__panel__())["Open its check"].clicks += 1
    assert (page.session.page, page.session.family) == ("families", "router")
    assert page.session.job == "ftj_3"


def test_choosing_one_shows_it_and_an_evaluation_opens_its_own_page():
    client = make_client(jobs_all=listed(told_job(), told_evaluation(status="succeeded")))
    page = open_page(client, query='{"records": {"wrong": true}}', view="slices")
    lines(page, "Ended jobs").press(0)
    assert page.session.job == "ftj_3"
    assert page.chosen.state == "shown"
    lines(page, "Ended jobs").press(1)
    assert (page.session.page, page.session.evaluation) == ("evaluations", "eval_1")
    assert (page.session.query, page.session.view) == ("", "")


def test_the_evaluation_of_a_fine_tune_is_opened_without_the_filter_of_something_else():
    held = told_evaluation(status="succeeded", training_job_id="ftj_3")
    job = told_job(dataset_evaluation=msgspec.to_builtins(held))
    page = open_page(make_client(jobs_get=job), job="ftj_3", query="{}", view="slices")
    buttons(page.__panel__())["Open its evaluation"].clicks += 1
    assert (page.session.page, page.session.evaluation) == ("evaluations", "eval_1")
    assert (page.session.dataset, page.session.query, page.session.view) == ("ds_1", "", "")


@pytest.mark.parametrize("chosen", [("ftj_5",), ("ftj_5", "ftj_4")])
def test_a_look_at_one_shows_nothing_under_another_that_was_chosen_meanwhile(chosen):
    look = HeldCall(lambda: running(60))
    n_asked = []

    def get(job_id):
        n_asked.append(job_id)
        if len(n_asked) == 2:
            return look()
        return running(40) if job_id == "ftj_4" else told_job(id=job_id)

    page = open_page(make_client(jobs_all=listed(running(40)), jobs_get=get), job="ftj_4")

    async def choose():
        looking = asyncio.create_task(page._look_at_chosen())
        await look.until_called()
        for job_id in chosen:
            page.session.job = job_id
            await until_done(looking)
        shown = page.detail
        said, losses = texts(shown.__panel__()), shown.losses
        look.go_on()
        await looking
        await until_done()
        assert page.detail is shown
        assert (texts(shown.__panel__()), shown.losses) == (said, losses)

    run(choose())
    assert page.chosen.data[0].id == chosen[-1]
    assert "60 of 200" not in texts(page.detail.__panel__())


def test_many_that_ended_are_shown_a_part_at_a_time():
    many = [told_job(id=f"ftj_{n}", created_at=float(n)) for n in range(50)]
    page = open_page(make_client(jobs_all=listed(*many)))
    assert len(lines(page, "Ended jobs").rows) == 20
    buttons(page.__panel__())["Show more of 50"].clicks += 1
    assert len(lines(page, "Ended jobs").rows) == 40


def test_leaving_stops_the_poller():
    page = open_page(make_client())
    page.close()
    assert not page.is_polling


def test_the_rate_is_that_of_the_last_half_minute():
    track = Track()
    for at, step in ((0.0, 0), (10.0, 100), (35.0, 150), (50.0, 180)):
        track.add(at, "heads", step, 200)
    assert track.rate == pytest.approx(80 / 40)
    assert track.left_s == pytest.approx(10)
    assert track.text("rows") == "2 rows/s, about 10 s left"
    assert track.text("steps") == "about 10 s left"


def test_another_phase_begins_anew():
    track = Track()
    track.add(0.0, "features", 5, 10)
    track.add(1.0, "features", 9, 10)
    track.add(2.0, "heads", 1, 10, 0.7)
    assert track.rate is None
    assert track.text("steps") == ""
    assert track.losses == [(1, 0.7)]
    assert "left" not in progress_text(running(40).summary, track)


def test_spans_are_said_in_words():
    assert [duration(s) for s in (5, 90, 7300)] == ["5 s", "2 min", "2 h"]
