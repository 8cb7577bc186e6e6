"""Shares corrected by the rates of an evaluation, where no answer was checked by chance."""

from __future__ import annotations

import pytest

import steelyard
from steelyard.app.job_runtime import open_worker
from steelyard.calibration.true_rates import corrected_rate
from support.datasets.dataset_rows import DECISIONS, make_rows
from support.models.evaluated import settings_of
from support.servers.live_server import live_server


def test_a_share_is_corrected_by_the_evaluation_of_the_model_until_answers_are_checked(tmp_path):
    with (
        live_server(home=tmp_path, jobs="off", dataset_min_rows=1) as server,
        steelyard.connect(server.url) as client,
    ):
        for number in range(30):
            client.decide(f"Ticket {number}", [DECISIONS[0]])
        (none, *_) = client.decision_series(decision="route").outcomes
        assert (none.corrected_share, none.corrected_by) == (None, None)
        rows = make_rows(200)
        for number, row in enumerate(rows):
            if number % 5:  # mostly right, wherever rows are placed
                answer = client.decide(row["context"], [DECISIONS[0]], store=False)
                row["targets"]["route"] = answer.decisions["route"].top
        dataset = client.datasets.create("tickets", rows)
        with open_worker(settings_of(server.services.settings.home)):
            asked = client.evaluations.create(dataset.id, "hashing")
            evaluation = client.evaluations.wait(asked.data[0], progress=False)
        detail = client.evaluations.detail(evaluation.id)
        confusion = next(each for each in detail.decisions if each.decision_id == "route").confusion
        counts, outcomes = confusion.counts, client.decision_series(decision="route").outcomes
        total = sum(map(sum, counts))
        corrected = []
        for each in outcomes:
            place = confusion.outcomes.index(each.outcome)
            n_so, hits = sum(counts[place]), counts[place][place]
            said_of_others = sum(row[place] for row in counts) - hits
            expected = corrected_rate(
                each.share.value * each.answers,
                each.answers,
                (hits, n_so),
                (total - n_so - said_of_others, total - n_so),
            )
            assert (expected is None) == (each.corrected_share is None)
            if expected is not None:
                assert each.corrected_share.value == pytest.approx(expected.value)
                assert each.corrected_by == evaluation.id
                assert f"by {evaluation.id}; the model says" in each.in_words()
                corrected.append(each)
        assert corrected
        assert all(each.true_share is None for each in outcomes)
        for each in client.decision_log(order="chance", limit=10).data:
            client.feedback(each.id, {"route": "other"})
        checked = client.decision_series(decision="route").outcomes
        assert all(each.corrected_share is None for each in checked)
        assert {each.true_share.n for each in checked} == {10}
