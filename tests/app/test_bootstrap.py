"""The composition root: the parts that settings name are opened, and closed again."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from steelyard.app.bootstrap import open_service
from steelyard.app.services import ApiServices
from steelyard.caller import LOCAL_ACCOUNT, Caller
from steelyard.errors import EngineUnavailableError
from steelyard.models.base_models import describe_base
from steelyard.scoring.assets import MANIFEST
from steelyard.scoring.hashing import WordCounter
from steelyard.serving.base import ModelDouble, parse_base_models
from steelyard.settings import InvalidSettingError, read_settings
from support.decisions.factories import make_request_dict
from support.servers.calling import send_now
from support.servers.hosting import Behaving


@contextmanager
def opened(home: Path, load_model: Any = None, **overrides: Any) -> Iterator[ApiServices]:
    settings = read_settings({"engine": "hashing", "home": home, **overrides}, environ={})
    with open_service(settings, load_model=load_model) as services:
        yield services


@pytest.mark.parametrize("text", ["", " , ", ","])
def test_no_further_models(text: str) -> None:
    assert parse_base_models(text) == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("small", "NAME=FOLDER"),
        ("=/srv", "NAME=FOLDER"),
        ("small=", "NAME=FOLDER"),
        ("router@3=hashing", "NAME=FOLDER"),
        ("a b=hashing", "NAME=FOLDER"),
        ("a=hashing,a=/srv", "once"),
        ("jev-latest=hashing", "starts other than 'jev'"),
    ],
)
def test_an_entry_that_cannot_be_used_is_named(text: str, message: str) -> None:
    with pytest.raises(InvalidSettingError, match=f"base_models.*{message}"):
        parse_base_models(text)


def test_a_folder_may_have_an_equals_sign() -> None:
    assert parse_base_models("a=/srv/x=1") == {"a": "/srv/x=1"}


def test_a_second_model_may_not_take_the_shipped_ones_name(tmp_path: Path) -> None:
    with (
        pytest.raises(InvalidSettingError, match="is the default, which needs no entry"),
        opened(tmp_path, base_models="hashing=hashing"),
    ):
        pass


def test_a_model_is_read_from_its_folder(tmp_path: Path, random_folder: Path) -> None:
    with opened(tmp_path, base_models=f"small={random_folder}", prices="small=3") as services:
        small = services.models.get("small")
        manifest = msgspec.json.decode((random_folder / MANIFEST).read_bytes())
        assert small.name != manifest["name"]
        assert small.engine == manifest["engine"]
        assert small.price_nano == 3
        assert services.models.default.name == "hashing"
        prepared = services.models.get("small").decide.prepare(make_request_dict())
        assert prepared.model == "small"
        assert prepared.tokenizer.name == manifest["tokenizer"]["name"]


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(EngineUnavailableError, match="manifest"),
        opened(tmp_path, base_models=f"small={tmp_path / 'nothing'}"),
    ):
        pass


def test_a_manifest_may_have_a_description_and_a_date(tmp_path: Path) -> None:
    def load(*_: object) -> ModelDouble:
        manifest = {"name": "m", "description": "A model.", "release_date": "2026-02-03"}
        return ModelDouble(Behaving("m"), WordCounter(), manifest=manifest)

    with opened(tmp_path, load) as services:
        model = describe_base(services.models.get("m"))
    assert (model.description, model.release_date) == ("A model.", "2026-02-03")


def test_a_price_of_a_model_that_is_not_here_is_noted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with opened(tmp_path, prices="hashing=1,hashign=2"):
        pass
    assert "not here: hashign" in caplog.text


def test_a_server_stops_though_its_engine_hangs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    scorer = Behaving("m")
    with opened(
        tmp_path, lambda *_: ModelDouble(scorer, WordCounter()), shutdown_s=0.05
    ) as services:
        scorer.hang()
        prepared = services.models.default.decide.prepare(make_request_dict())
        running = services.models.default.queue.submit(prepared.rendered)
        assert scorer.entered.acquire(timeout=30)
    assert "did not end its last call" in caplog.text
    scorer.may_answer.set()
    running.result(timeout=30)


def test_two_services_on_one_state_replay_each_others_answers(tmp_path: Path) -> None:
    payload = msgspec.json.encode(make_request_dict())
    caller = Caller(LOCAL_ACCOUNT, None, "full", "127.0.0.1")
    with opened(tmp_path) as first, opened(tmp_path) as second:
        answered, replayed = (
            send_now("POST /v1/decide", services, payload, caller=caller, key="k")
            for services in (first, second)
        )
    assert (answered.is_replay, replayed.is_replay) == (False, True)
    assert replayed.body == answered.body


def test_deciding_in_process_loads_no_database_and_no_web_framework() -> None:
    program = (
        "import sys, steelyard.app.deployment as b, steelyard.settings as s\n"
        "with b.open_deployment(s.read_settings({'engine': 'hashing'}, environ={})) as d:\n"
        "    d.answers.answer_dict({'context': 'a', 'decisions':"
        " [{'id': 'a', 'kind': 'binary', 'question': 'Is it?'}]})\n"
        "print([name for name in ('sqlalchemy', 'sanic', 'httpx') if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
