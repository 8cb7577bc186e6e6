"""A call to a tuned model: the name of its answer, and calls while it loads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest
from msgspec import UNSET, UnsetType, structs

from steelyard import errors
from steelyard.caller import Caller
from steelyard.decisions.validation import read_request
from steelyard.families.lineage.lineage import AnswerBound, FamilyModel
from steelyard.families.tuned import TunedModels
from steelyard.models.calls import TunedCall, TunedCalls
from steelyard.scoring.protocol import Scorer
from steelyard.serving.decide import Prepared
from steelyard.serving.fallback import Attempts, UnansweredError, candidates_of
from steelyard.serving.registry import Base, ModelRegistry
from support.decisions.factories import make_request_dict
from support.families.lineage_cases import make_gate
from support.servers.hosting import Behaving, hosted
from support.waiting import until

PATIENCE_S = 30
CALLER = Caller("acc_1", "key_1", "full", "127.0.0.1")


def model(number: int, base: str = "base", reader: str | UnsetType = UNSET) -> FamilyModel:
    return FamilyModel(
        adapter=f"ft-ftj_{number}",
        family="router",
        version=number,
        job_id=f"ftj_{number}",
        base=base,
        parent=None,
        created_at=0.0,
        gate=structs.replace(make_gate(), reader=reader),
    )


@dataclass(frozen=True)
class Meaning:
    model: FamilyModel
    version: str | None = None
    artifact_sha256: str = "sha"
    bound: AnswerBound | None = None
    false_alarms: float | None = None


@dataclass
class World:
    """The meaning of names, and a loader that waits or fails on command."""

    meanings: dict[str, Meaning | errors.SteelyardError] = field(default_factory=dict)
    used: list[tuple[str, str]] = field(default_factory=list)
    scorer: Behaving = field(default_factory=lambda: Behaving("tuned"))
    may_load: threading.Event = field(default_factory=threading.Event)
    failure: Exception | None = None
    registry: ModelRegistry = field(init=False)
    calls: TunedCalls = field(init=False)
    models: TunedModels = field(init=False)

    async def resolve(self, caller: Caller, name: str) -> Meaning:
        assert caller is CALLER
        meaning = self.meanings[name]
        if isinstance(meaning, errors.SteelyardError):
            raise meaning
        return meaning

    def note_use(self, account_id: str, name: str) -> None:
        self.used.append((account_id, name))

    def fetch(self, sha256: str) -> Path:
        assert self.may_load.wait(timeout=60)
        if self.failure is not None:
            raise self.failure
        return Path(sha256)

    def load(self, folder: Path, base: Any, *, threads: int | None, adapter: str) -> Scorer:
        return self.scorer

    def find(self, name: str) -> TunedCall:
        return asyncio.run(self.calls.find(CALLER, name))

    def attempts(
        self, name: str, within_s: float = PATIENCE_S, **fields: Any
    ) -> tuple[Attempts, Prepared]:
        call = self.find(name)
        request = read_request(make_request_dict(model=name, **fields))
        prepared = call.prepare(request, perf_counter())
        candidates = candidates_of(prepared, self.registry, {name: call})
        return Attempts(prepared, candidates, perf_counter() + within_s), prepared

    def ask(self, name: str, within_s: float = PATIENCE_S, **fields: Any) -> Any:
        return asyncio.run(self.attempts(name, within_s, **fields)[0].run())[0]


@pytest.fixture
def world() -> Iterator[World]:
    with ExitStack() as closing:
        base, scorer = closing.enter_context(hosted("base", price_nano=12))
        cheap, _ = closing.enter_context(hosted("cheap", price_nano=3))
        world = World({"router": Meaning(model(1), "router@1"), "router@1": Meaning(model(1))})
        world.registry = ModelRegistry([base, cheap])
        bases = {"base": Base(base, scorer)}
        world.models = TunedModels(world, bases, world.load, find_base=world.registry.find)
        world.calls = TunedCalls(world, world.models, world.registry, warm_wait_s=0.05)
        world.may_load.set()
        closing.callback(world.models.close)
        closing.callback(world.may_load.set)
        yield world


def load(world: World) -> None:
    asyncio.run(world.models.ensure(model(1), "sha", PATIENCE_S))


def test_an_answer_has_the_name_called_and_a_familys_the_version(world: World) -> None:
    load(world)
    answer = world.ask("router")
    assert (answer.model, answer.version, answer.fallback) == ("router", "router@1", None)
    answer = world.ask("router@1")
    assert (answer.model, answer.version) == ("router@1", UNSET)
    call = world.find("router")
    assert (call.price_nano, call.max_input_tokens) == (12, 65_536)


def test_one_that_reads_evidence_costs_its_reader_too_and_is_refused_without_it(
    world: World,
) -> None:
    world.meanings["reading"] = Meaning(model(2, reader="cheap"))
    call = world.find("reading")
    assert call.price_nano == 12 + 3
    with world.models.holding(model(2, reader="cheap"), "sha") as loaded:
        assert loaded.price_nano == 12 + 3
    world.meanings["lacking"] = Meaning(model(3, reader="steelyard-reader-1"))
    with pytest.raises(
        errors.EngineUnavailableError, match=r"steelyard-reader-1.*install"
    ) as refused:
        world.find("lacking")
    assert refused.value.status == 503


def test_the_price_is_the_bases_and_no_dearer_model_stands_in(world: World) -> None:
    attempts, prepared = world.attempts("router")
    del attempts
    candidates = candidates_of(prepared, world.registry, {"router": world.find("router")})
    assert [one.name for one in candidates] == ["router", "base", "cheap"]


@pytest.mark.parametrize(
    ("refusal", "raised"),
    [
        (errors.FamilyOffError("It is off."), errors.FamilyOffError),
        (errors.NotFoundError("There is none."), errors.NotFoundError),
        (errors.InvalidReferenceError("It is no name."), errors.NotFoundError),
    ],
)
def test_a_name_without_a_model_is_refused(
    world: World, refusal: errors.SteelyardError, raised: type[errors.SteelyardError]
) -> None:
    world.meanings["other"] = refusal
    with pytest.raises(raised):
        world.find("other")


def test_a_model_whose_base_is_not_here_cannot_be_called(world: World) -> None:
    world.meanings["other@2"] = Meaning(model(2, base="elsewhere"))
    with pytest.raises(errors.ModelUnavailableError, match="router@2"):
        world.find("other@2")


def test_while_it_loads_a_base_model_stands_in_or_it_is_refused(world: World) -> None:
    world.may_load.clear()
    answer = world.ask("router")
    assert (answer.model, answer.fallback.reason) == ("base", "model_warming")
    with pytest.raises(UnansweredError) as caught:
        world.ask("router", fallback="none")
    assert isinstance(caught.value.error, errors.ModelWarmingError)
    assert not caught.value.has_begun
    world.may_load.set()
    load(world)
    assert world.ask("router").fallback is None, "it counts as failed"


def test_it_waits_no_longer_than_the_request_may(world: World) -> None:
    world.may_load.clear()
    world.calls.warm_wait_s = 60
    with pytest.raises(UnansweredError) as caught:
        world.ask("router", within_s=0.05, fallback="none")
    assert isinstance(caught.value.error, errors.ModelWarmingError)


def test_the_call_that_cannot_load_it_is_refused(world: World) -> None:
    world.calls.warm_wait_s = PATIENCE_S
    world.failure = errors.EngineUnavailableError("A file was altered.")
    attempts, _ = world.attempts("router", fallback="auto")
    with pytest.raises(UnansweredError) as caught:
        asyncio.run(attempts.run())
    assert isinstance(caught.value.error, errors.ModelUnavailableError)
    with pytest.raises(errors.ModelUnavailableError):
        world.find("router")


def test_a_store_that_is_away_lets_another_stand_in(world: World) -> None:
    world.calls.warm_wait_s = PATIENCE_S
    world.failure = errors.StorageUnavailableError("The store is away.")
    answer = world.ask("router")
    assert (answer.model, answer.fallback.reason) == ("base", "engine_unavailable")


def test_giving_up_while_it_loads_scores_nothing(world: World) -> None:
    world.may_load.clear()
    world.calls.warm_wait_s = PATIENCE_S
    attempts, _ = world.attempts("router")

    async def give_up() -> None:
        asking = asyncio.ensure_future(attempts.run())
        await until(lambda: world.models.states() == {"ft-ftj_1": "loading"})
        attempts.abandon()
        with pytest.raises(UnansweredError):
            await asking
        world.may_load.set()
        await until(lambda: world.models.states() == {"ft-ftj_1": "loaded"})

    asyncio.run(give_up())
    assert world.scorer.n_calls == 1, "more than the probe was scored"
