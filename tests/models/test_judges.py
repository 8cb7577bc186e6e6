"""A judge is set up through a server that runs: download, connect, check, calibrate, route."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace

import numpy as np
import pytest

import steelyard
from steelyard.errors import InvalidRequestError, ModelUnavailableError, NotFoundError
from steelyard.models.judge_setup import JudgeSetup
from steelyard.scoring.protocol import ScoredDecision
from steelyard.serving.judge.catalogue import read_catalogue
from support.models.judges import smollm2
from support.waiting import wait_until

NAME = "smollm2-135m"
PATIENCE_S = 60


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    with steelyard.embed(home, engine="hashing", jobs="off") as server:
        yield server


def settled(judges, step, *args):
    """Begin something for the judge, and return how the judge is once that has ended."""
    step(NAME, *args)

    def find():
        [judge] = [judge for judge in judges.list().data if judge.name == NAME]
        return judge if judge.task.status != "running" else None

    wait_until(find, PATIENCE_S)
    return find()


def too_sure(rendered, _):
    """Answer yes to everything, and surer than is right."""
    names = [decision.names for decision in rendered.decisions]
    answer = Future()
    answer.set_result(
        [ScoredDecision(np.array([4.0] + [0.0] * (len(each) - 1)), np.zeros(0)) for each in names]
    )
    return answer


def test_a_judge_goes_from_the_catalogue_to_a_route(server, monkeypatch):
    judges, folder = server.client.judges, server.home / "models"
    with pytest.raises(NotFoundError, match="No model of the catalogue"):
        judges.download("nothing")
    with pytest.raises(ModelUnavailableError, match="download it first"):
        judges.connect(NAME)
    with pytest.raises(NotFoundError, match="connect it first"):
        judges.check(NAME)
    folder.mkdir()
    # A file that is there is checked, and not downloaded.
    (folder / read_catalogue()[NAME].file).symlink_to(smollm2())
    found = settled(judges, judges.download)
    assert (found.task.status, found.downloaded, found.connected) == ("succeeded", True, False)
    assert judges.connect(NAME).connected
    with pytest.raises(InvalidRequestError, match="the name of a model"):
        judges.use_in_route(NAME, "hashing")
    assert judges.use_in_route(NAME, "small").routes == ["small"]

    hosted = SimpleNamespace(queue=SimpleNamespace(submit=too_sure))
    monkeypatch.setattr(JudgeSetup, "_hosted", lambda *_: hosted)
    check = settled(judges, judges.check).check
    assert (check.asked, check.answered, check.share_of_yes) == (32, 32, 1.0)
    rows = [
        {
            "context": f"Invoice {number}.",
            "decisions": [{"id": "paid", "kind": "binary", "question": "Is it paid?"}],
            "targets": {"paid": {"yes": 1.0} if number % 2 else {"no": 1.0}},
        }
        for number in range(40)
    ]
    made = server.client.datasets.create("invoices", training=rows[:20], evaluation=rows[20:])
    found = settled(judges, judges.calibrate, made.id)
    assert found.task.error is None
    fit = found.calibration
    assert (fit.fitted_on, fit.held_out, fit.in_use, found.calibrated) == (20, 20, True, True)
    assert fit.log_loss_after < fit.log_loss_before
