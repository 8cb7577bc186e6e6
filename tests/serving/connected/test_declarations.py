"""Connected models of several hosts with one state: what one of them knows, all know."""

from __future__ import annotations

import datetime as dt
import socket

import httpx
import pytest
from msgspec import structs

from steelyard.serving.connected.declarations import Declarations
from steelyard.serving.connected.declared import (
    FILE,
    Calibration,
    ConnectedModel,
    ModelsFile,
    write_file,
    write_models,
)
from steelyard.serving.connected.declared_route import DeclaredRoute, RouteStep
from steelyard.settings import InvalidSettingError
from support.models.remote_models import remote_model
from support.servers.live_server import live_server
from support.waiting import wait_until

FAR = ConnectedModel(wire="chat", url="http://127.0.0.1:9/v1", added=dt.date(2026, 11, 30))
ROUTE = DeclaredRoute(steps=(RouteStep(model="base", threshold=0.5), RouteStep(model="far")))
CALIBRATED = structs.replace(
    FAR, calibrations=(Calibration(number=1, dataset="ds_1", version=1, temperatures={}),)
)


@pytest.fixture
def hosts(state, tmp_path):
    """Two hosts of one state, each with a home of its own."""
    homes = (tmp_path / "one", tmp_path / "two")
    return [(Declarations(state, home), home) for home in homes]


def test_what_one_host_writes_another_reads(hosts):
    (one, home), (two, other) = hosts
    before = two.number()
    one.change(lambda declared: declared.with_model("far", FAR))
    one.change(lambda declared: declared.with_route("both", ROUTE))
    assert two.read() == ModelsFile({"far": FAR}, {"both": ROUTE})
    assert two.number() > before
    number = one.number()
    two.change(lambda declared: declared)
    assert one.number() == number
    two.change(lambda declared: declared.without("both"))
    assert one.read() == ModelsFile({"far": FAR}, {})
    assert not home.exists()
    assert not other.exists()


def test_what_cannot_be_used_is_refused_and_changes_nothing(hosts):
    (one, _), (two, _) = hosts
    one.change(lambda declared: declared.with_model("far", FAR))
    for wrong in (
        lambda declared: declared.with_route("far", ROUTE),
        lambda declared: declared.with_model("a b", FAR),
    ):
        with pytest.raises(InvalidSettingError):
            two.change(wrong)
    assert one.read() == ModelsFile({"far": FAR}, {})


def test_the_file_of_a_home_is_read_in_and_the_later_change_wins(hosts):
    (one, home), (two, other) = hosts
    two.change(lambda declared: declared.with_model("own", FAR))
    write_file(home, ModelsFile({"far": FAR}, {"both": ROUTE}))
    assert one.read() == two.read() == ModelsFile({"own": FAR, "far": FAR}, {"both": ROUTE})
    # A command changes it, and the file says the same as before.
    two.change(lambda declared: declared.with_model("far", CALIBRATED).without("both"))
    write_file(home, ModelsFile({"far": FAR}, {"both": ROUTE}))
    assert one.read() == ModelsFile({"own": FAR, "far": CALIBRATED}, {})
    # A new entry of the file wins, with the calibrations of the model that it still is.
    dear = structs.replace(FAR, price_in="0.5")
    write_models(home, {"far": dear})
    assert one.read().models["far"] == structs.replace(CALIBRATED, price_in="0.5")
    moved = structs.replace(FAR, url="http://127.0.0.1:10/v1")
    write_models(home, {"far": moved})
    assert one.read().models["far"] == moved
    # The same file at another host is nothing new; what this home's no longer has is removed.
    write_models(other, {"far": moved})
    two.change(lambda declared: declared.with_model("far", CALIBRATED))
    assert two.read().models["far"] == CALIBRATED
    write_models(home, {})
    assert one.read() == two.read() == ModelsFile({"own": FAR}, {})


def test_the_machine_of_a_home_may_have_another_name(state, tmp_path, monkeypatch):
    write_models(tmp_path, {"far": FAR})
    Declarations(state, tmp_path).read_in()
    monkeypatch.setattr(socket, "gethostname", lambda: "made-anew")
    again = Declarations(state, tmp_path)
    write_models(tmp_path, {})
    # Of several machines, each with such a folder, it may be another one's.
    assert again.read() == ModelsFile({"far": FAR} if state.is_shared else {}, {})


def test_a_file_that_is_gone_or_spoilt_removes_nothing(hosts):
    (one, home), (two, _) = hosts
    write_models(home, {"far": FAR})
    one.read_in()
    (home / FILE).write_text("[models.far]\nwire = chat")
    with pytest.raises(InvalidSettingError, match="line 2"):
        one.read()
    (home / FILE).unlink()
    assert one.read() == two.read() == ModelsFile({"far": FAR}, {})


def test_two_servers_have_the_models_of_both(postgres, tmp_path):
    url = postgres.new_state()
    homes = [str(tmp_path / name) for name in ("one", "two")]
    with (
        remote_model() as far,
        live_server(home=homes[0], state_url=url, jobs="off") as one,
        live_server(home=homes[1], state_url=url, jobs="off") as two,
    ):
        # The file of one home, while both run.
        write_models(tmp_path / "one", {"far": structs.replace(FAR, url=far.url)})
        body = {
            "context": "Paid twice.",
            "decisions": [{"id": "a", "kind": "binary", "question": "Paid?"}],
        }

        def answers(server, model):
            answer = httpx.post(f"{server.url}/v1/decide", json={**body, "model": model})
            return answer.status_code == 200 and answer.json()["model"] == model

        wait_until(lambda: answers(two, "far"))
        routed = httpx.post(f"{two.url}/v1/judges/far/route", json={"route": "both"})
        assert routed.json()["routes"] == ["both"]
        wait_until(lambda: answers(one, "both"))
        assert [each["name"] for each in httpx.get(f"{one.url}/v1/routes").json()["data"]] == [
            "both"
        ]
        assert httpx.delete(f"{one.url}/v1/routes/both").json()["deleted"]
        wait_until(lambda: not answers(two, "both"))
