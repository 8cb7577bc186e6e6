"""Files of connected models: one host has them, and the others fetch them by hash."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from sqlalchemy import delete, func, select

from steelyard.cli.state_checkup import declared_for_checks
from steelyard.errors import DataDamagedError
from steelyard.serving.connected.declarations import Declarations
from steelyard.serving.connected.declared import write_models
from steelyard.serving.connected.files import ModelFiles, in_place, is_here
from steelyard.serving.connected.hosts import ModelHosts
from steelyard.serving.reader.declaring import reader_model
from steelyard.serving.tables import model_hosts
from steelyard.settings import read_settings
from steelyard.storage.frame_store import open_store
from support.models.entailment_models import write_encoder
from support.servers.live_server import live_server
from support.waiting import wait_until

BODY = {
    "context": "The customer is happy.",
    "decisions": [{"id": "happy", "kind": "binary", "question": "Is the customer happy?"}],
    "model": "nli",
}


@pytest.fixture
def home(tmp_path):
    """A home with a reader in it."""
    write_encoder(tmp_path / "one" / "nli")
    write_models(tmp_path / "one", {"nli": reader_model(Path("nli"))})
    return tmp_path / "one"


def test_the_others_have_the_same_files(state, state_url, home, tmp_path):
    store, other = open_store(tmp_path / "store"), tmp_path / "two"
    one, two = Declarations(state, home), Declarations(state, other)
    model = one.read().models["nli"]
    before = one.number()
    ModelFiles(one, store, home, is_shared=True).tick()
    files = two.files()["nli"]
    assert {"model.onnx", "tokenizer.json", "config.json"} <= files.keys()
    assert two.number() > before
    place = in_place(model, files, other)
    assert not is_here(place)
    ModelFiles(two, store, other, is_shared=True).tick()
    assert is_here(place)
    for name in files:
        assert Path(place.file, name).read_bytes() == (home / "nli" / name).read_bytes()
    # What commands look at is there, and not where it is at the first.
    settings = read_settings({"home": str(other), "state_url": state_url}, environ={})
    assert declared_for_checks(settings).models["nli"].file == place.file
    # The one that has them goes on with its own.
    assert in_place(model, files, home).file == str(home / "nli")
    # Another file is another model's: the stored ones are no longer its.
    one.change(lambda declared: declared.with_model("nli", reader_model(Path("other"))))
    assert two.files() == {}
    ModelFiles(two, store, other, is_shared=True).tick()
    assert not is_here(place)


def test_a_file_that_was_altered_is_not_used(state, home, tmp_path):
    store, other = open_store(tmp_path / "store"), tmp_path / "two"
    one, two = Declarations(state, home), Declarations(state, other)
    model = one.read().models["nli"]
    ModelFiles(one, store, home, is_shared=True).tick()
    files = two.files()["nli"]
    sound = reader_model(Path("sound"))
    shutil.copytree(home / "nli", home / "sound")
    (home / "sound" / "model.onnx").write_bytes(b"sound")
    one.change(lambda declared: declared.with_model("sound", sound))
    ModelFiles(one, store, home, is_shared=True).tick()
    (tmp_path / "store" / f"{files['model.onnx']}.file").write_bytes(b"other")
    fetched = other / "models" / "fetched"
    for name in (".fetching-now", ".fetching-left"):
        (fetched / name).mkdir(parents=True)
    os.utime(fetched / ".fetching-left", (0, 0))
    with pytest.raises(DataDamagedError, match="altered"):
        ModelFiles(two, store, other, is_shared=True).tick()
    assert not is_here(in_place(model, files, other))
    # The others come all the same, and what a killed process left goes.
    place = Path(in_place(sound, two.files()["sound"], other).file)
    assert set(fetched.iterdir()) == {place, fetched / ".fetching-now"}


def test_a_host_without_the_file_answers_too(postgres, home, tmp_path):
    shared = {
        "state_url": postgres.new_state(),
        "frames_url": str(tmp_path / "frames"),
        "jobs": "off",
    }

    def ready(server):
        answer = httpx.get(f"{server.url}/v1/models/nli/ready").json()
        return answer["ready"], answer["hosts"], answer["hosts_ready"]

    with live_server(home=str(home), **shared) as one:
        wait_until(lambda: ready(one) == (True, 1, 1))
        with live_server(home=str(tmp_path / "two"), **shared) as two:
            wait_until(lambda: ready(two) == (True, 2, 2), last=lambda: ready(two))
            assert ready(one) == (True, 2, 2)
            answer = httpx.post(f"{two.url}/v1/decide", json=BODY).json()
            assert (answer["model"], answer["decisions"]["happy"]["top"]) == ("nli", "yes")

            def keys():
                return {host.services.models.find("nli").evaluation_key for host in (one, two)}

            # The first has the hash of its file once it looked again after storing it.
            wait_until(lambda: len(keys()) == 1, last=keys)
        # A database notices the end of a connection when it comes to it.
        wait_until(lambda: ready(one) == (True, 1, 1))


def test_a_host_that_was_taken_for_dead_is_counted_again(state):
    hosts = ModelHosts(state, SimpleNamespace(hosted=[]), "one:/home")
    hosts.tick()
    state.write_now(lambda connection: connection.execute(delete(model_hosts)))
    hosts.tick()
    counted = select(func.count()).select_from(model_hosts)
    assert state.read_now(lambda connection: connection.scalar(counted)) == 1
