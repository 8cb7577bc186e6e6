"""The change of a process's engines to another place, and those that cannot change."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from steelyard.errors import EngineUnavailableError
from steelyard.scoring.remote.engine_host import RemoteHost
from steelyard.scoring.remote.routed import RoutedEngine, probe_inputs
from steelyard.scoring.remote.triton_address import TritonAddress, parse_scorer
from steelyard.settings import InvalidSettingError
from support.models.remote_engines import LocalEngine, Remote

pytest.importorskip("grpc")

ONE, TWO = "triton://one:1", "triton://two:2"


class World:
    """A host whose servers are stand-ins; ``failing`` is called first when an engine is made."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.failing: dict[str, Callable[[], object]] = {}
        self.file.write_text(ONE)
        self.host = RemoteHost(
            parse_scorer(f"file://{file}"), falls_back=False, timeout_s=1.0, probes=False
        )

    def connect(self, address: TritonAddress, model: str, **_: Any) -> Remote:
        self.failing.get(model, lambda: None)()
        return Remote(address.url)

    def engine(self, model: str) -> RoutedEngine:
        def load_local() -> LocalEngine:
            self.failing.get(model, lambda: None)()
            return LocalEngine()

        return self.host.engine(model, sha256="ab", precision="int8", load_local=load_local)

    def look(self, text: str | None = None) -> dict[str, str]:
        """Look at the file, and at changed engines; return where passes go, by model."""
        if text is not None:
            self.file.write_text(text)
        self.host.look()
        for engine in list(self.host._engines):
            engine.step()
            engine.run(probe_inputs(), ["logits"])
        return {
            model: status.remote or status.place for model, status in self.host.statuses().items()
        }


@pytest.fixture
def world(tmp_path, monkeypatch) -> Iterator[World]:
    world = World(tmp_path / "scorer")
    monkeypatch.setattr("steelyard.scoring.remote.triton_engine.TritonEngine", world.connect)
    engines = [world.engine(model) for model in ("a", "b", "c")]
    yield world
    for engine in engines:
        engine.close()
    assert world.host.statuses() == {}
    world.host.close()


def fail(error: Exception) -> Callable[[], object]:
    def raise_it() -> None:
        raise error

    return raise_it


def test_engines_change_over_with_the_file(world):
    assert world.look() == dict.fromkeys("abc", ONE)
    assert world.look(TWO) == dict.fromkeys("abc", TWO)
    assert world.look("") == dict.fromkeys("abc", "in-process")


@pytest.mark.parametrize(
    "error",
    [
        EngineUnavailableError("The file is missing."),
        InvalidSettingError("The key cannot be read."),
        OSError(24, "Too many open files"),
        RuntimeError("out of memory"),
        KeyError("weights"),
    ],
)
@pytest.mark.parametrize(("to", "place"), [(TWO, TWO), ("", "in-process")])
def test_one_that_cannot_is_tried_again_and_the_others_change_over(world, caplog, error, to, place):
    world.failing["a"] = fail(error)
    for _ in range(3):
        assert world.look(to) == {"a": ONE, "b": place, "c": place}
    [told] = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert told.getMessage().startswith("a stays where it is, and is tried again: ")
    assert str(error) in told.getMessage()
    del world.failing["a"]
    assert world.look() == dict.fromkeys("abc", place)
    world.failing["a"] = fail(error)
    assert world.look() == dict.fromkeys("abc", place)


def test_one_that_cannot_follows_the_next_address_and_is_tried_while_the_file_is_unreadable(world):
    world.failing["a"] = fail(EngineUnavailableError("The file is missing."))
    world.look("")
    assert world.look(TWO) == {"a": ONE, "b": TWO, "c": TWO}
    del world.failing["a"]
    assert world.look("no address") == dict.fromkeys("abc", TWO)


def test_a_new_reason_is_reported(world, caplog):
    for text in ("one", "one", "another"):
        world.failing["b"] = fail(EngineUnavailableError(text))
        world.look(TWO)
    assert [record.getMessage().rpartition(": ")[2] for record in caplog.records] == [
        "one",
        "another",
    ]


def test_one_that_is_closed_is_tried_no_more(world):
    tried = []

    def failing() -> None:
        tried.append(1)
        raise EngineUnavailableError("The file is missing.")

    engine = world.engine("d")
    world.failing["d"] = failing
    world.look(TWO)
    assert len(tried) == 1
    engine.close()
    assert world.look() == dict.fromkeys("abc", TWO)
    assert len(tried) == 1
