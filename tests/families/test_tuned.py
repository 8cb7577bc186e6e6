"""Loading tuned models: once each, on a thread, within a bound, and reported truly."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import UNSET

from steelyard.errors import EngineUnavailableError, ModelWarmingError, StorageUnavailableError
from steelyard.families.tuned import FAILED_S, TunedModels, tuned_evaluation_key
from steelyard.scoring.protocol import Scorer
from steelyard.serving.registry import Base, HostedModel
from support.decisions.factories import make_request_dict
from support.servers.hosting import Behaving, Scored, crash, hosted
from support.waiting import until

PATIENCE_S = 30


@dataclass(frozen=True)
class Tuned:
    """A model that may be loaded."""

    adapter: str
    base: str = "base"
    gate: Any = field(default_factory=lambda: SimpleNamespace(reader=UNSET))

    @property
    def ref(self) -> str:
        return f"router@{self.adapter}"

    @property
    def artifact(self) -> str:
        return f"sha-{self.adapter}"


@dataclass
class Loader:
    """Returns artifacts and loads them: counts, waits and fails as set."""

    fetched: list[str] = field(default_factory=list)
    scorers: dict[str, Behaving] = field(default_factory=dict)
    may_load: threading.Event = field(default_factory=threading.Event)
    failure: BaseException | None = None
    behave: Callable[[Scored], Scored] | None = None
    closed: set[str] = field(default_factory=set)

    def fetch(self, sha256: str) -> Path:
        self.fetched.append(sha256)
        assert self.may_load.wait(timeout=60)
        if self.failure is not None:
            raise self.failure
        return Path(sha256)

    def load(self, folder: Path, base: Any, *, threads: int | None, adapter: str) -> Scorer:
        assert isinstance(base, Behaving)
        assert threads is None
        loader = self

        class Closing(Behaving):
            def close(self) -> None:
                loader.closed.add(folder.name)
                super().close()

        scorer = self.scorers[folder.name] = Closing(folder.name)
        scorer.behave = self.behave
        return scorer


@dataclass
class World:
    """Tuned models over one base, with a clock that is set by hand."""

    loader: Loader
    models: TunedModels
    base: HostedModel
    now: list[float]

    def hold(self, *adapters: str) -> None:
        """Load models, one after the other, and use each for a moment."""
        for adapter in adapters:
            self.now[0] += 1
            model = Tuned(adapter)
            with self.models.holding(model, model.artifact):
                pass


@pytest.fixture
def world() -> Iterator[World]:
    with ExitStack() as closing:
        base, scorer = closing.enter_context(hosted("base", price_nano=12))
        loader, now = Loader(), [1000.0]
        loader.may_load.set()
        models = TunedModels(
            loader, {"base": Base(base, scorer)}, loader.load, max_loaded=2, clock=lambda: now[0]
        )
        closing.callback(models.close)
        closing.callback(loader.may_load.set)
        yield World(loader, models, base, now)


ONE = Tuned("1")


async def ensure(world: World, model: Tuned = ONE, wait_s: float = PATIENCE_S) -> None:
    await world.models.ensure(model, model.artifact, wait_s)


def wait_until(is_so: Any) -> None:
    asyncio.run(asyncio.wait_for(until(is_so), PATIENCE_S))


def test_a_model_is_loaded_and_probed_and_then_answers(world: World) -> None:
    assert world.models.states() == {}
    asyncio.run(ensure(world))
    assert world.models.states() == {"1": "loaded"}
    assert world.loader.scorers["sha-1"].n_calls == 1, "it was not probed"
    model = world.models.loaded("1")
    assert model is not None
    prepared = model.decide.prepare(make_request_dict())
    answer = asyncio.run(model.answer(prepared, PATIENCE_S, on_queued=lambda _: None))
    assert answer.model == "router@1"
    assert (model.price_nano, model.max_input_tokens) == (12, world.base.max_input_tokens)
    assert model.evaluation_key == tuned_evaluation_key("sha-1", world.base.evaluation_key)
    assert model.evaluation_key != tuned_evaluation_key("sha-2", world.base.evaluation_key)


def test_a_caller_with_a_short_deadline_is_refused_while_loading_goes_on(world: World) -> None:
    world.loader.may_load.clear()
    with pytest.raises(ModelWarmingError, match="still loading") as caught:
        asyncio.run(ensure(world, wait_s=0.01))
    assert caught.value.retry_after_s == 2
    assert world.models.states() == {"1": "loading"}
    assert world.models.loaded("1") is None
    world.loader.may_load.set()
    asyncio.run(ensure(world))
    assert world.loader.fetched == ["sha-1"]


def test_first_calls_at_the_same_time_load_once(world: World) -> None:
    async def several() -> list[HostedModel]:
        async def use() -> HostedModel:
            async with world.models.using(ONE, ONE.artifact, PATIENCE_S) as model:
                return model

        world.loader.may_load.clear()
        waiting = [asyncio.ensure_future(use()) for _ in range(8)]
        await until(lambda: world.loader.fetched == ["sha-1"])
        world.loader.may_load.set()
        return await asyncio.gather(*waiting)

    assert len({id(model) for model in asyncio.run(several())}) == 1
    assert world.loader.fetched == ["sha-1"]


def test_a_caller_that_goes_away_disturbs_no_others(world: World) -> None:
    async def leave() -> None:
        world.loader.may_load.clear()
        leaving = asyncio.ensure_future(ensure(world))
        staying = asyncio.ensure_future(ensure(world))
        await until(lambda: bool(world.loader.fetched))
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving
        world.loader.may_load.set()
        await staying

    asyncio.run(leave())
    assert world.models.states() == {"1": "loaded"}


def test_load_returns_at_once(world: World) -> None:
    states: list[Any] = []
    world.models.on_loaded = lambda: states.append(world.models.states())
    world.loader.may_load.clear()
    world.models.load(ONE, ONE.artifact)
    world.models.load(ONE, ONE.artifact)
    assert world.models.states() == {"1": "loading"}
    assert states == []
    world.loader.may_load.set()
    wait_until(lambda: states == [{"1": "loaded"}])
    assert world.loader.fetched == ["sha-1"]


def test_an_artifact_that_cannot_be_loaded_has_failed_for_a_while(world: World) -> None:
    world.loader.failure = EngineUnavailableError("A file was altered.")
    for _ in range(2):
        with pytest.raises(EngineUnavailableError, match=r"router@1.*A file was altered"):
            asyncio.run(ensure(world))
    assert world.models.states() == {"1": "failed"}
    assert world.loader.fetched == ["sha-1"], "it was tried again at once"
    world.loader.failure = None
    world.now[0] += FAILED_S
    assert world.models.states() == {}
    asyncio.run(ensure(world))
    assert world.models.states() == {"1": "loaded"}


@pytest.mark.parametrize("failure", [StorageUnavailableError("The store is away."), OSError()])
def test_a_store_that_is_away_fails_no_model(world: World, failure: Exception) -> None:
    world.loader.failure = failure
    with pytest.raises(EngineUnavailableError, match="router@1"):
        asyncio.run(ensure(world))
    assert world.models.states() == {}
    world.loader.failure = None
    asyncio.run(ensure(world))


def test_a_model_that_does_not_answer_its_probe_has_failed(world: World) -> None:
    world.loader.behave = crash
    with pytest.raises(EngineUnavailableError, match="log says why"):
        asyncio.run(ensure(world))
    assert world.models.states() == {"1": "failed"}
    wait_until(lambda: world.loader.closed == {"sha-1"})


def test_a_model_of_a_base_that_is_not_here_has_failed(world: World) -> None:
    with pytest.raises(EngineUnavailableError, match="base model other of router@1 is not here"):
        asyncio.run(ensure(world, Tuned("1", base="other")))
    assert world.models.states() == {"1": "failed"}


def test_past_the_bound_the_one_used_longest_ago_goes(world: World) -> None:
    world.hold("1", "2", "1", "3")
    assert world.models.states() == {"1": "loaded", "3": "loaded"}
    wait_until(lambda: world.loader.closed == {"sha-2"})
    world.hold("2")
    assert world.models.states() == {"2": "loaded", "3": "loaded"}


def test_warm_or_used_models_stay(world: World) -> None:
    assert world.models.warm_room() == {"base": 2}
    world.hold("1")
    world.models.pin({"1"})
    assert world.models.warm_room() == {"base": 1}
    two = Tuned("2")
    with world.models.holding(two, two.artifact):
        world.hold("3")
        assert set(world.models.states()) == {"1", "2", "3"}
        world.hold("4")
        assert set(world.models.states()) == {"1", "2", "4"}
    # Nobody uses the fourth, and two are one too many with it.
    assert set(world.models.states()) == {"1", "2"}
    world.hold("5")
    assert set(world.models.states()) == {"1", "5"}
    world.models.pin(set())
    world.hold("6")
    assert set(world.models.states()) == {"5", "6"}


def test_a_forgotten_model_ends_its_requests(world: World) -> None:
    async def answer() -> str:
        async with world.models.using(ONE, ONE.artifact, PATIENCE_S) as model:
            scorer = world.loader.scorers["sha-1"]
            scorer.hang()
            prepared = model.decide.prepare(make_request_dict())
            asking = asyncio.ensure_future(
                model.answer(prepared, PATIENCE_S, on_queued=lambda _: None)
            )
            await until(lambda: scorer.n_calls == 2)
            world.models.forget("1")
            assert world.models.states() == {}
            scorer.may_answer.set()
            return (await asking).model

    assert asyncio.run(answer()) == "router@1"
    wait_until(lambda: world.loader.closed == {"sha-1"})
    world.models.forget("1")
    # Whoever calls it again loads it anew.
    asyncio.run(ensure(world))
    assert world.loader.fetched == ["sha-1", "sha-1"]


def test_a_model_that_is_forgotten_while_it_loads_is_closed_when_it_has(world: World) -> None:
    world.loader.may_load.clear()
    world.models.load(ONE, ONE.artifact)
    wait_until(lambda: bool(world.loader.fetched))
    world.models.forget("1")
    assert world.models.states() == {}
    world.loader.may_load.set()
    wait_until(lambda: world.loader.closed == {"sha-1"})


def test_closing_answers_waiting_requests_and_takes_no_more(world: World) -> None:
    world.hold("1")
    model = world.models.loaded("1")
    assert model is not None
    prepared = model.decide.prepare(make_request_dict())
    futures = [model.queue.submit(prepared.rendered) for _ in range(3)]
    world.models.close()
    world.models.close()
    assert all(len(future.result(timeout=0)) == 3 for future in futures)
    assert world.loader.closed == {"sha-1"}
    assert world.models.states() == {}
    with pytest.raises(EngineUnavailableError, match="stopping"):
        world.models.load(ONE, ONE.artifact)
    with pytest.raises(EngineUnavailableError, match="stopping"):
        asyncio.run(ensure(world))
