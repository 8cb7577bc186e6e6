"""Judges and connected models are set up through a server that runs."""

from __future__ import annotations

import datetime as dt
import re
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import httpx
import numpy as np
import pytest
from click.testing import CliRunner
from msgspec import structs

import steelyard
from steelyard.cli.main import main
from steelyard.errors import InvalidRequestError, ModelUnavailableError, NotFoundError
from steelyard.models import judge_setup
from steelyard.models.judge_setup import JudgeSetup
from steelyard.models.qualifying import doubt_of, wordings_by_id
from steelyard.scoring.protocol import ScoredDecision
from steelyard.serving.connected.declarations import declared_in
from steelyard.serving.connected.declared import (
    ConnectedModel,
    ModelsFile,
    read_file,
    write_file,
)
from steelyard.serving.connected.declared_route import DeclaredRoute, RouteStep
from steelyard.serving.judge.catalogue import read_catalogue
from steelyard.serving.judge.download import sole_writer
from steelyard.serving.reader.declaring import BUNDLED
from steelyard.serving.registry import ModelRegistry
from steelyard.settings import read_settings
from support.api.error_shape import assert_canonical_error
from support.models.judges import smollm2
from support.waiting import wait_until

NAME = "smollm2-135m"
PATIENCE_S = 60


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    with steelyard.embed(home, engine="hashing", jobs="off") as server:
        yield server


def stored(server):
    """Return the connected models and routes that a server's state has."""
    return declared_in(read_settings({"home": server.home}, environ={}))


def settled(judges, step, *args, name=NAME):
    """Begin something for a model, and return how it is once that has ended."""
    step(name, *args)

    def find():
        [judge] = [judge for judge in judges.list().data if judge.name == name]
        return judge if judge.task.status != "running" else None

    wait_until(find, PATIENCE_S)
    return find()


def test_a_file_of_this_server_is_listed_and_connected(server):
    judges, folder = server.client.judges, Path(server.client.judges.list().folder)
    folder.mkdir(exist_ok=True)
    (folder / "our reader").symlink_to(BUNDLED)
    (folder / "Broken.Q4.gguf").write_bytes(b"no model")
    (folder / "notes.txt").write_text("no model either")
    try:
        here = {each.name: each for each in judges.list().data if each.downloaded}
        assert not {"notes", "notes.txt"} & here.keys()
        reader, broken = here["our-reader"], here["Broken.Q4"]
        assert (reader.kind, reader.connected, reader.wire) == ("reader", False, None)
        assert (broken.kind, broken.connected, broken.bytes) == ("judge", False, 8)
        with pytest.raises(ModelUnavailableError, match=r"not a GGUF file.*Get it again"):
            judges.connect(broken.name)
        assert judges.connect(reader.name).wire == "entailment"
        assert stored(server).models["our-reader"].file == str(folder / "our reader")
        names = [each.name for each in judges.list().data]
        assert names.count("our-reader") == 1
        walked = DeclaredRoute(
            steps=(RouteStep(model="hashing", threshold=0.5), RouteStep(model="our-reader"))
        )
        declared = read_file(server.home)
        write_file(server.home, ModelsFile(declared.models, {"walk": walked}))
        with pytest.raises(ModelUnavailableError, match="walk asks our-reader; remove that first"):
            judges.disconnect("our-reader")
        write_file(server.home, declared)
        assert not judges.disconnect("our-reader").connected
        assert "our-reader" not in stored(server).models
        with pytest.raises(ModelUnavailableError, match="is not connected"):
            judges.disconnect(broken.name)
    finally:
        (folder / "our reader").unlink()
        (folder / "Broken.Q4.gguf").unlink()
        write_file(server.home, stored(server).without("our-reader"))


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
    folder.mkdir(exist_ok=True)
    file = folder / read_catalogue()[NAME].file
    with sole_writer(file):
        refused = settled(judges, judges.download).task
    assert (refused.status, "is getting" in refused.error) == ("failed", True)
    # A file that is there is checked, and not downloaded.
    file.symlink_to(smollm2())
    found = settled(judges, judges.download)
    assert (found.task.status, found.downloaded, found.connected) == ("succeeded", True, False)
    assert judges.connect(NAME).connected
    for route, message in (
        ("hashing", "route is the name of a model"),
        ("a b", "cannot be a model's name"),
    ):
        with pytest.raises(InvalidRequestError, match=message) as refused:
            judges.use_in_route(NAME, route)
        assert refused.value.details[0]["path"] == ["body", "route"]
    assert judges.use_in_route(NAME, "small").routes == ["small"]

    hosted = SimpleNamespace(queue=SimpleNamespace(submit=too_sure))
    monkeypatch.setattr(JudgeSetup, "hosted", lambda *_: hosted)
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

    # A model of another server is checked and calibrated in the same way.
    far = ConnectedModel(
        wire="chat", url="http://127.0.0.1:9/v1", timeout_s=5.0, added=dt.date(2026, 11, 28)
    )
    declared = read_file(server.home)
    write_file(server.home, ModelsFile({**declared.models, "far": far}, declared.routes))
    found = settled(judges, judges.check, name="far")
    assert (found.wire, found.connected, found.check.answered) == ("chat", True, 32)
    found = settled(judges, judges.calibrate, made.id, name="far")
    assert found.calibrated
    # The file is as it was, and stays in effect once it is written again with nothing new in it.
    assert read_file(server.home).models == {"far": far}
    write_file(server.home, read_file(server.home))
    assert stored(server).models["far"].calibration.dataset == made.id


PAID = {"id": "paid", "kind": "binary", "question": "Is it paid now?"}


def test_a_judge_qualifies_on_labels_of_people_until_it_is_another(server, monkeypatch):
    judges = server.client.judges
    file = server.home / "judge.gguf"
    file.write_bytes(b"one")
    models = {
        name: ConnectedModel(wire="gguf", file="judge.gguf", timeout_s=5.0) for name in ("q", "kin")
    }
    other = ConnectedModel(wire="chat", url="http://127.0.0.1:9/v1", model="Qwen", timeout_s=5.0)
    declared = read_file(server.home)
    write_file(
        server.home, ModelsFile({**declared.models, **models, "other": other}, declared.routes)
    )
    hosted = SimpleNamespace(queue=SimpleNamespace(submit=too_sure))
    monkeypatch.setattr(JudgeSetup, "hosted", lambda *_: hosted)

    def rows(n, n_yes, **metadata):
        return [
            {
                "context": f"Note {number}, {metadata}.",
                "decisions": [PAID],
                "targets": {"paid": {"yes" if number < n_yes else "no": 1.0}},
                "metadata": metadata,
            }
            for number in range(n)
        ]

    def made(*held_out):
        training = rows(20, 10, by="expert", side="training")
        return server.client.datasets.create("notes", training=training, evaluation=held_out).id

    few = made(*rows(40, 40, by="person"), *rows(60, 0, by="model"))
    assert re.search(
        r"40 were answered; .* \(rows with labels: 60 by model, 40 by person\)\.$",
        settled(judges, judges.qualify, few, name="q").task.error,
    )
    assert judges.qualifications("q").data == []
    with pytest.raises(NotFoundError, match="connect it first"):
        judges.qualifications("nothing")
    assert (
        settled(judges, judges.qualify, made(*rows(60, 42, by="expert")), name="q").task.error
        is None
    )
    listed = judges.qualifications("q")
    assert (listed.is_qualified, listed.data[0].passed, listed.data[0].floor) == (
        False,
        False,
        0.85,
    )
    assert listed.data[0].agreement.value == listed.data[0].accuracy.value == 0.7
    good = made(*rows(60, 57, by="person"))
    shown = CliRunner().invoke(main, ["judge", "qualify", "q", good, "--url", server.client.url])
    assert (shown.exit_code, "95% [86%, 99%] of 60" in shown.output) == (0, True), shown.output
    assert "likely to err alike: kin." in shown.output
    listed = judges.qualifications("q")
    assert [each.number for each in listed.data] == [2, 1]
    first = listed.data[0]
    assert (listed.is_qualified, first.kin, first.labelled_by) == (
        True,
        ["kin"],
        ["expert", "person"],
    )
    assert (first.dataset_id, first.contexts, first.failures) == (good, 60, 0)
    assert first.log_loss.low < first.log_loss.value < first.log_loss.high
    wordings = [
        set(wordings_by_id([{**PAID, **other}]).values())
        for other in ({}, {"question": "Paid?"}, {"guideline": "A *voucher* is none."})
    ]
    assert [set(first.wordings)] == wordings[:1]
    reasons = [doubt_of(listed.data, first.identity, each) for each in (set(), *wordings)]
    assert reasons == [None, None, *["it qualified on other wordings"] * 2]
    assert doubt_of([], first.identity, set()) == "it has not been held to labels of people"
    assert "in 70%, of 85% needed" in doubt_of(listed.data[1:], first.identity, set())
    other_file = structs.replace(first.identity, file_sha256="")
    assert doubt_of(listed.data, other_file, set()) == "it is another since it qualified (file)"
    file.write_bytes(b"two")
    listed = judges.qualifications("q")
    assert (listed.is_qualified, [each.voided_by for each in listed.data]) == (
        False,
        [["file"]] * 2,
    )
    file.write_bytes(b"one")
    assert judges.qualifications("q").is_qualified
    changed = {**models, "q": structs.replace(models["q"], permutations=3)}
    write_file(server.home, ModelsFile({**declared.models, **changed}, declared.routes))
    assert judges.qualifications("q").data[0].voided_by == ["settings"]
    write_file(server.home, declared)
    gone = judges.qualifications("q")
    assert (gone.is_qualified, gone.data[0].voided_by) == (False, ["disconnected"])


def test_a_route_is_fitted_judged_and_removed_by_the_server(server, monkeypatch):
    models, asked = server.client.models, []

    def sure_of_even(rendered, _):
        asked.append(rendered)
        number = int(re.search(r"Order (\d+)", str(rendered.context))[1])
        sure = 6.0 if number % 2 == 0 else 0.1
        answer = Future()
        answer.set_result([ScoredDecision(np.array([sure, 0.0]), np.zeros(0))])
        return answer

    base = models.list().data[0].id
    find, prices = ModelRegistry.find, {"cheap": 0, "strong": 1_000}

    def find_known(registry, name):
        if name not in prices:
            return find(registry, name)
        return SimpleNamespace(
            name=name,
            price_nano=prices[name],
            is_route=False,
            decide=find(registry, base).decide.renamed(name),
            queue=SimpleNamespace(submit=sure_of_even),
        )

    monkeypatch.setattr(ModelRegistry, "find", find_known)
    question = {"id": "paid", "kind": "binary", "question": "Is it paid?"}
    rows = [
        {"context": f"Order {n}.", "decisions": [question], "targets": {"paid": {"yes": 1.0}}}
        for n in range(80)
    ]
    made = server.client.datasets.create("orders", training=rows[:40], evaluation=rows[40:])
    fit = partial(models.fit_route, dataset_id=made.id, bound="share", value=0.5)
    for wrong, field in (
        (lambda: fit(base, ["cheap", "strong"]), "name of a model"),
        (lambda: fit("first", ["cheap", "cheap"]), "each once"),
        (lambda: fit("first", [*"abcde"]), "give 2 to 4"),
        (lambda: fit("first", ["cheap", "nothing"]), "no base or connected model"),
        (lambda: fit("first", ["cheap", "strong"], bound="accuracy", value=1.0), "no accuracy"),
    ):
        with pytest.raises(InvalidRequestError, match=field):
            wrong()
    fit("first", ["cheap", "strong"], rows=40)

    def ended():
        [route] = [each for each in models.routes().data if each.name == "first"]
        return route if route.task.status != "running" else None

    wait_until(ended, PATIENCE_S)
    route = ended()
    assert (route.task.error, route.task.done, route.task.total) == (None, 80, 80)
    assert [step.model for step in route.models] == ["cheap", "strong"]
    assert route.models[1].threshold is None
    assert [figures.name for figures in route.fit.evaluation] == ["first", "cheap", "strong"]
    assert route.fit.evaluation[0].share_escalated.value <= 0.5
    assert len(asked) == 160
    with pytest.raises(InvalidRequestError, match="a route already"):
        fit("first", ["cheap", "strong"])
    fit("strict", ["cheap", "strong"], bound="accuracy", value=0.999, confidence=0.99)
    wait_until(lambda: models.routes().data[-1].task.status == "failed", PATIENCE_S)
    strict = models.routes().data[-1]
    assert strict.models == []
    assert "cannot certify an accuracy of 0.999" in strict.task.error
    for name in ("strict", "first"):
        assert models.remove_route(name).deleted
    assert {"first", "strict"}.isdisjoint(each.name for each in models.routes().data)
    with pytest.raises(NotFoundError, match="no route 'first'"):
        models.remove_route("first")


#: What spoils the file, and what is said of it.
SPOILT = {
    "syntax": (b"[models.far]\nwire = chat", "line 2"),
    "a field": (
        b'\n[models.far]\nwire = "chat"\nconcurrency = "many"',
        "models.far, line 2: Expected `int`",
    ),
    "an unknown field": (b'[models."far"]\nwide = 1', "models.far, line 1: "),
    "no entry": (b"models = 7", "Expected `object`"),
    "no text": (b"\xff\xfe", "cannot be used"),
    "nested": (b"a = " + b"[" * 10_000, "cannot be used"),
    "a value": (b'[models.far]\nwire = "chat"\nurl = "nowhere"', "url must be"),
}


@pytest.mark.parametrize(("content", "said"), SPOILT.values(), ids=SPOILT)
def test_a_spoilt_file_is_said_with_its_line(server, content, said):
    file = server.home / "models.toml"
    before = file.read_bytes() if file.exists() else None
    file.write_bytes(content)
    try:
        for path in ("judges", "routes"):
            refused = httpx.get(f"{server.url}/v1/{path}")
            assert_canonical_error(refused, 409, "model_unavailable", message=said)
        body = {"name": "r", "models": ["a", "b"], "dataset_id": "d", "bound": "share", "value": 1}
        for refused in (
            httpx.post(f"{server.url}/v1/routes", json=body),
            httpx.delete(f"{server.url}/v1/routes/r"),
            httpx.post(f"{server.url}/v1/judges/far/check"),
        ):
            assert_canonical_error(refused, 409, "model_unavailable")
        assert file.read_bytes() == content
    finally:
        file.unlink() if before is None else file.write_bytes(before)


def test_a_judge_is_not_connected_under_the_name_of_a_route(server, monkeypatch):
    declared = read_file(server.home)
    steps = (RouteStep(model="hashing", threshold=0.5), RouteStep(model="far"))
    models = {name: model for name, model in declared.models.items() if name != NAME}
    write_file(server.home, ModelsFile(models, {NAME: DeclaredRoute(steps=steps)}))
    monkeypatch.setattr(JudgeSetup, "_downloaded", lambda *_: Path("judge.gguf"))
    monkeypatch.setattr(judge_setup, "read_header", lambda _: SimpleNamespace(context_tokens=0))
    monkeypatch.setattr(judge_setup, "examine_judge", lambda *_: ("", None))
    try:
        with pytest.raises(ModelUnavailableError, match="A route is named"):
            server.client.judges.connect(NAME)
    finally:
        write_file(server.home, declared)


def test_a_setup_is_done_once_for_each_key(server):
    declared = read_file(server.home)
    steps = (RouteStep(model="hashing", threshold=0.5), RouteStep(model="far"))
    kept = {"Idempotency-Key": "once"}

    def remove(name, key=kept):
        return httpx.delete(f"{server.url}/v1/routes/{name}", headers=key)

    routes = dict.fromkeys(("one", "two"), DeclaredRoute(steps=steps))
    write_file(server.home, ModelsFile(declared.models, routes))
    try:
        first = remove("one")
        again = remove("one")
        assert (first.status_code, again.content) == (200, first.content)
        assert_canonical_error(remove("two"), 409, "idempotency_conflict")
        assert_canonical_error(remove("one", {}), 404, "not_found")
        assert routes.keys() & stored(server).routes.keys() == {"two"}
    finally:
        write_file(server.home, declared)
