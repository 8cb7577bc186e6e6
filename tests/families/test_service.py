"""Families through their service: stored, reported, loaded, charged and healed."""

from __future__ import annotations

import asyncio
import functools

import msgspec
import pytest

from steelyard import errors
from steelyard.caller import Caller
from steelyard.evaluations.store import EVALUATIONS
from steelyard.families import fine_tune_store as job_rows
from steelyard.families.lineage.fees import Tariff
from steelyard.families.lineage.lineage import HOUR_S, adapter_of
from steelyard.families.lineage.rollback import roll_back
from steelyard.families.wire import (
    EstimateContinue,
    EstimateFamily,
    Family,
    FamilyList,
    Hyperparameters,
)
from steelyard.models.wire import Model
from support.accounts.operating import LOCAL, START
from support.families.stored_lineage import BASE, OTHER_BASE, artifact_of

DAY = 86_400.0
OTHER = Caller("acct_other", None, "full", "")


class TestLife:
    def test_a_family_grows_moves_and_is_returned(self, kept):
        job_id = kept.start()
        told = kept.get()
        assert (told.switched_on, told.served, told.models) == (True, None, [])
        assert told.continue_.state == "queued"
        kept.train(job_id)
        told = kept.get()
        assert told.latest.ref == "router@1"
        assert told.latest.adapter == adapter_of(job_id)
        assert kept.served() is None or told.served.ref == "router@1"
        kept.service.tick()
        told = kept.get()
        assert told.served.ref == "router@1"
        assert told.moved.from_ is None
        assert told.continue_.state == "no_new_data"
        assert [job.outcome for job in told.jobs] == ["joined"]

    def test_a_move_waits_for_the_engines_and_happens_when_they_have_loaded(self, kept):
        kept.engines.is_slow = True
        job_id = kept.start()
        kept.train(job_id)
        kept.service.tick()
        assert kept.get().move.waiting_for == "engines"
        assert kept.engines.loads[0] == (adapter_of(job_id), artifact_of(job_id))
        kept.engines.finish_loading()
        kept.service.tick()
        assert kept.served() == "router@1"

    def test_the_old_model_answers_until_the_new_one_is_loaded(self, kept):
        kept.grow(n_models=1)
        kept.engines.is_slow = True
        kept.grow(n_models=2)
        assert kept.resolve("router").version == "router@1"
        kept.engines.finish_loading()
        kept.service.tick()
        resolved = kept.resolve("router")
        assert (resolved.version, resolved.model.base) == ("router@2", BASE)
        assert (
            resolved.artifact_sha256
            == kept.lineages.read_now("local").artifacts[resolved.model.adapter]
        )

    def test_a_gate_that_does_not_pass_adds_no_model(self, kept):
        job_id = kept.start()
        kept.train(job_id, passed=False)
        told = kept.get()
        assert told.models == []
        assert told.jobs[0].outcome == "gate_failed"

    def test_families_are_listed_by_name_without_counts(self, kept):
        kept.start("zebra")
        kept.start("ant")
        page = asyncio.run(kept.service.page(LOCAL))
        assert isinstance(page, FamilyList)
        assert [family.id for family in page.data] == ["ant", "zebra"]
        assert page.data[0].jobs is msgspec.UNSET
        assert page.data[0].continue_.rows is None

    def test_a_family_is_its_accounts_alone(self, kept, state):
        kept.grow()
        for call in (
            kept.service.get(OTHER, "router"),
            kept.family_models.resolve(OTHER, "router@1"),
        ):
            with pytest.raises(errors.NotFoundError):
                asyncio.run(call)
        assert asyncio.run(kept.service.page(OTHER)).data == []

    def test_a_dataset_that_a_fine_tune_needs_is_not_deleted(self, kept):
        job_id = kept.start()
        reader = kept.service.reader_of
        assert kept.state.read_now(lambda c: reader(c, "ds_1")) == "a fine-tune"
        kept.fail(job_id)
        assert kept.state.read_now(lambda c: reader(c, "ds_1")) is None

    def test_none_is_queued_on_a_dataset_deleted_meanwhile(self, kept):
        plan = kept.plans.plan

        async def deleting(caller, basis, **given):
            made = await plan(caller, basis, **given)
            kept.grow_dataset(deleted_at=START)
            return made

        kept.plans.plan = deleting
        with pytest.raises(errors.DatasetDeletedError):
            kept.start()
        assert kept.lineage().jobs == {}

    def test_starting_moves_the_datasets_clock(self, kept):
        kept.start()
        row = kept.plans._row(LOCAL, "ds_1")
        assert row.used_at == kept.clock.at

    def test_a_second_one_is_refused_while_one_trains(self, kept):
        kept.grow()
        kept.grow_dataset()
        kept.resume()
        with pytest.raises(errors.FamilyTrainingError):
            kept.resume()

    def test_nothing_new_is_no_fine_tune(self, kept):
        kept.grow()
        for version in (None, 1):
            with pytest.raises(errors.NoNewDataError):
                kept.resume(dataset_version=version)

    def test_bases_that_a_family_may_start_from(self, kept):
        kept.grow()
        assert kept.job(kept.start("second", **{"from": "router@1"})).parent == kept.models()[0]
        for origin in ("nothing", "router@9"):
            with pytest.raises(errors.InvalidReferenceError):
                kept.start("third", **{"from": origin})

    def test_an_estimate_agrees_with_the_start(self, make_kept):
        kept = make_kept(tariff=Tariff(token_nano=7, minimum_nano=100))
        body = {"family": "router", "dataset_id": "ds_1"}
        told = asyncio.run(kept.service.estimate(LOCAL, EstimateFamily(**body)))
        assert (told.price_usd, told.minimum_applied) == ("0.000007", False)
        with pytest.raises(errors.PriceChangedError):
            kept.start(max_price_usd="0.000006")
        job_id = kept.start(max_price_usd=told.price_usd)
        assert kept.job(job_id).price_nano == 7_000
        kept.train(job_id)
        kept.grow_dataset()
        estimate = kept.service.estimate_continue(LOCAL, "router", EstimateContinue())
        assert asyncio.run(estimate).price_usd == told.price_usd
        assert kept.get().continue_.price_usd == told.price_usd

    def test_a_family_moves_to_another_base_and_back_with_its_models(self, kept):
        kept.grow()
        kept.grow_dataset()
        job = kept.job(kept.resume(base=OTHER_BASE, latest=kept.models()[0]))
        assert (job.base, job.parent) == (OTHER_BASE, kept.models()[0])
        kept.train(job.id)
        kept.service.tick()
        second = kept.models()[1]
        assert kept.lineage().models[second].base == OTHER_BASE
        assert asyncio.run(kept.family_models.base_of(LOCAL, "router")) == OTHER_BASE
        assert asyncio.run(kept.family_models.base_of(LOCAL, "router@1")) == BASE
        asked = []
        plan = kept.plans.plan

        async def noting(caller, basis, **given):
            asked.append((basis.base, basis.is_move))
            return await plan(caller, basis, **given)

        kept.plans.plan = noting
        kept.grow_dataset()
        for base in (None, OTHER_BASE, BASE):
            told = kept.service.estimate_continue(LOCAL, "router", EstimateContinue(base=base))
            assert asyncio.run(told).price_usd == "0"
        kept.post("roll_back", "router", to="router@1", discard=["router@2"])
        assert asyncio.run(kept.family_models.base_of(LOCAL, "router")) == BASE
        job = kept.job(kept.resume())
        assert (job.base, job.parent) == (BASE, kept.models()[0])
        assert asked == [(OTHER_BASE, False), (OTHER_BASE, False), (BASE, True), (BASE, False)]

    def test_a_plan_is_not_queued_once_the_latest_model_has_another_base(self, kept):
        kept.grow()
        kept.grow_dataset()
        kept.train(kept.resume(base=OTHER_BASE))
        kept.grow_dataset()
        plan = kept.plans.plan

        async def rolled_back(caller, basis, **given):
            made = await plan(caller, basis, **given)
            kept.lineages.apply_now(
                "local",
                lambda lineage, now: roll_back(lineage, "router", "router@1", ["router@2"], now),
            )
            return made

        kept.plans.plan = rolled_back
        with pytest.raises(errors.FamilyChangedError, match="its base model"):
            kept.resume()

    def test_no_family_moves_to_or_from_another_server(self, kept, bases, monkeypatch):
        kept.grow()
        kept.grow_dataset()

        def refusal(**body):
            estimate = kept.service.estimate_continue(LOCAL, "router", EstimateContinue(**body))
            refused = []
            for ask in (lambda: kept.resume(**body), lambda: asyncio.run(estimate)):
                with pytest.raises(errors.InvalidReferenceError) as caught:
                    ask()
                refused.append(caught.value)
            assert refused[0].message == refused[1].message
            assert refused[0].details[0]["path"] == ["body", "base"]
            return refused[0].message

        assert "GET /v1/models" in refusal(base="nothing")
        assert "GET /v1/models" in refusal(base="router@1")
        own, other = bases.get(BASE), bases.get(OTHER_BASE)
        with monkeypatch.context() as patched:
            patched.setattr(other, "is_connected", True)
            assert "start a new family from it" in refusal(base=OTHER_BASE)
            patched.setattr(other, "is_route", True)
            assert "is a route" in refusal(base=OTHER_BASE)
        with monkeypatch.context() as patched:
            patched.setattr(own, "is_connected", True)
            assert f"start a new family from {OTHER_BASE}" in refusal(base=OTHER_BASE)
            # Where it is already, it goes on.
            assert kept.job(kept.resume(base=BASE)).base == BASE

    def test_every_wrong_field_is_listed(self, kept):
        with pytest.raises(errors.InvalidRequestError) as caught:
            kept.start(max_price_usd="much", hyperparameters={"steps": 1}, colour="red")
        paths = {".".join(map(str, one.path)) for one in caught.value.violations}
        assert paths == {"body.max_price_usd", "body.hyperparameters.steps", "body.colour"}

    def test_hyperparameters_reach_the_plan(self, kept):
        job_id = kept.start(hyperparameters=msgspec.to_builtins(Hyperparameters(seed=9)))
        assert kept.job(job_id).hyperparameters.seed == 9


class TestKeys:
    def test_a_key_starts_once(self, kept):
        first = kept.post("start", key="k", family="router", dataset_id="ds_1")
        kept.clock.at += 23 * HOUR_S
        second = kept.post("start", key="k", family="router", dataset_id="ds_1")
        assert (second.body, second.is_replay) == (first.body, True)
        assert len(kept.lineage().jobs) == 1
        with pytest.raises(errors.IdempotencyConflictError):
            kept.post("start", key="k", family="other", dataset_id="ds_1")

    def test_a_refusal_leaves_the_key_free(self, kept):
        kept.start("router")
        with pytest.raises(errors.FamilyExistsError):
            kept.start("router", key="k")
        kept.start("other", key="k")

    @pytest.mark.parametrize(
        ("what", "names", "body"),
        [
            ("switch", ["router"], {"on": False}),
            ("keep_warm", ["router"], {"enabled": True}),
            ("roll_back", ["router"], {"to": "router@1", "discard": ["router@2"]}),
            ("switch_model", ["router@1"], {"on": True}),
        ],
    )
    def test_every_change_replays(self, kept, what, names, body):
        kept.grow(n_models=2)
        first = kept.post(what, *names, key="k", **body)
        revision = kept.lineages.read_now("local").revision
        again = kept.post(what, *names, key="k", **body)
        assert again.is_replay
        assert again.body == first.body
        assert kept.lineages.read_now("local").revision == revision
        kind = Model if what == "switch_model" else Family
        msgspec.json.decode(again.body, type=kind)

    def test_the_same_key_on_another_family_is_a_conflict(self, kept):
        kept.grow("router")
        kept.grow("other")
        kept.post("switch", "router", key="k", on=False)
        with pytest.raises(errors.IdempotencyConflictError):
            kept.post("switch", "other", key="k", on=False)


class TestSwitching:
    def test_off_and_on(self, kept):
        kept.grow()
        told = kept.told("switch", "router", on=False)
        assert (told["switched_on"], told["off_reason"]) == (False, "owner")
        assert "jobs" not in told
        assert "continue" not in told
        with pytest.raises(errors.FamilyOffError):
            kept.resolve("router")
        assert kept.models()[0] not in kept.engines.held
        told = kept.told("switch", "router", on=True)
        assert told["served"]["state"] == "loaded"

    def test_a_model_that_is_still_loading_is_switched_by_a_later_call(self, kept):
        kept.grow()
        kept.engines.is_slow = True
        kept.engines.held.clear()
        with pytest.raises(errors.ModelWarmingError):
            kept.post("switch_model", "router@1", key="k", on=True)
        assert not kept.lineage().models[kept.models()[0]].switch.is_on
        kept.engines.finish_loading()
        kept.post("switch_model", "router@1", key="k", on=True)
        assert kept.resolve("router@1").version is None

    def test_a_model_that_cannot_be_loaded_is_not_switched_on(self, kept):
        kept.grow()
        kept.post("switch", "router", on=False)
        kept.engines.broken.add(kept.models()[0])
        with pytest.raises(errors.EngineUnavailableError, match="roll router back"):
            kept.post("switch", "router", on=True)

    def test_places_count_models_and_are_freed_in_the_same_step(self, make_kept):
        kept = make_kept(live_limit=1)
        kept.grow(n_models=2)
        with pytest.raises(errors.LiveLimitError) as caught:
            kept.post("switch_model", "router@1", on=True)
        assert caught.value.details[0]["answering"][0]["model"] == "router@2"
        kept.post("switch_model", "router@2", on=True)
        kept.post("switch_model", "router@1", on=True, switch_off=["router", "router@2"])
        assert kept.resolve("router@1").model.adapter == kept.models()[0]
        for name in ("router", "router@2"):
            with pytest.raises((errors.FamilyOffError, errors.ModelOffError)):
                kept.resolve(name)

    def test_a_place_freed_lets_a_family_move(self, make_kept):
        kept = make_kept(live_limit=1)
        kept.grow("router")
        kept.grow("other")
        assert kept.get("other").move.waiting_for == "place"
        kept.post("switch", "router", on=False)
        kept.service.tick()
        assert kept.served("other") == "other@1"

    def test_guards(self, kept):
        kept.grow(n_models=2)
        first, second = kept.models()
        with pytest.raises(errors.ServedChangedError):
            kept.post("switch", "router", on=False, served=first)
        with pytest.raises(errors.ServedChangedError):
            kept.post("keep_warm", "router", enabled=True, served=None)
        kept.post("switch", "router", on=False, served=second)

    def test_models_are_returned(self, kept):
        kept.grow(n_models=2)
        kept.post("switch", "router", on=False)
        kept.post("roll_back", "router", to="router@1", discard=["router@2"])
        first, second = asyncio.run(kept.family_models.models(LOCAL))
        assert (first.id, first.status, first.lora) == ("router@1", "ready", kept.models()[0])
        assert (first.family, first.model_name, first.version) == (BASE, "router", 1)
        assert first.decision_price_nano == "3"
        assert first.evaluation_set.dataset.name == "tickets"
        assert (second.status, second.parent) == ("discarded", first.lora)
        assert second.discarded_at == kept.clock.at
        assert len({first.evaluation_key, second.evaluation_key}) == 2
        assert asyncio.run(kept.family_models.describe_model(LOCAL, "router@2")) == second
        for name, error in [
            ("router", errors.InvalidReferenceError),
            (kept.models()[0], errors.NotFoundError),
            ("nothing", errors.NotFoundError),
            ("router@9", errors.NotFoundError),
            ("router@x", errors.InvalidReferenceError),
        ]:
            with pytest.raises(error):
                asyncio.run(kept.family_models.describe_model(LOCAL, name))

    def test_readiness_loads_nothing(self, kept):
        kept.grow()
        ready = asyncio.run(kept.family_models.readiness(LOCAL, "router"))
        assert (ready.model, ready.ready) == ("router", True)
        kept.engines.held.clear()
        n_loads = len(kept.engines.loads)
        ready = asyncio.run(kept.family_models.readiness(LOCAL, "router"))
        assert (ready.ready, ready.reason) == (False, "model_not_ready")
        assert len(kept.engines.loads) == n_loads
        with pytest.raises(errors.ModelOffError):
            asyncio.run(kept.family_models.readiness(LOCAL, "router@1"))


class TestRollback:
    def test_newer_models_are_gone_for_good_and_their_numbers_with_them(self, kept):
        kept.grow(n_models=3)
        third = kept.models()[2]
        with pytest.raises(errors.RollbackChangedError) as caught:
            kept.post("roll_back", "router", to="router@1", discard=["router@3"])
        assert caught.value.details == [{"discard": ["router@2", "router@3"], "cancel": []}]
        told = kept.told("roll_back", "router", to="router@1", discard=["router@2", "router@3"])
        assert told["served"]["ref"] == "router@1"
        assert third not in kept.engines.held
        with pytest.raises(errors.ModelDiscardedError):
            kept.resolve("router@3")
        kept.grow(n_models=4)
        assert kept.served() == "router@4"

    def test_fine_tunes_and_evaluations_of_deleted_models_are_cancelled(self, kept):
        kept.grow(n_models=2)
        kept.evaluate(kept.models()[1], "eval_1")
        kept.evaluate(kept.models()[1], "eval_2", status="running")
        kept.evaluate(kept.models()[0], "eval_3")
        kept.grow_dataset()
        job_id = kept.resume()
        kept.run(job_id)
        wakes = kept.wakes
        kept.post("roll_back", "router", to="router@1", discard=["router@2"])
        assert kept.wakes > wakes
        assert kept.job(job_id).status == "cancelling"
        statuses = [
            kept.state.read_now(lambda c, one=one: EVALUATIONS.find(c, one)).status
            for one in ("eval_1", "eval_2", "eval_3")
        ]
        assert statuses == ["cancelled", "cancelling", "queued"]
        kept.stop(job_id)
        assert kept.job(job_id).status == "cancelled"


class TestDeletion:
    def test_a_family_without_models_frees_its_name(self, kept):
        job_id = kept.start()
        with pytest.raises(errors.FamilyTrainingError):
            kept.post("delete", "router")
        kept.fail(job_id)
        assert kept.told("delete", "router", key="k")["deleted"] is True
        with pytest.raises(errors.NotFoundError):
            kept.post("delete", "router")
        kept.post("delete", "router", key="k")
        assert kept.job(job_id).family_deleted
        kept.start()

    def test_a_family_with_models_keeps_its_name(self, kept):
        kept.grow()
        kept.post("switch", "router", on=False)
        kept.post("delete", "router", dataset_id="ds_1", latest=kept.models()[0])
        for call in (
            kept.service.get(LOCAL, "router"),
            kept.family_models.resolve(LOCAL, "router"),
        ):
            with pytest.raises(errors.FamilyDeletedError):
                asyncio.run(call)
        with pytest.raises(errors.FamilyExistsError):
            kept.start()
        assert kept.state.read_now(job_rows.live_artifacts) == set()

    def test_a_model_that_an_evaluation_uses_stays(self, kept):
        kept.grow(n_models=2)
        kept.evaluate(kept.models()[0])
        with pytest.raises(errors.VersionInUseError, match="eval_1"):
            kept.post("delete_model", "router@1")
        kept.state.write_now(
            lambda c: EVALUATIONS.move(c, "eval_1", "cancelled", at=START, only_if=("queued",))
        )
        assert kept.told("delete_model", "router@1") == {"id": "router@1", "deleted": True}
        kept.post("delete_model", "router@1")
        live = kept.state.read_now(job_rows.live_artifacts)
        assert live == {kept.lineages.read_now("local").artifacts[kept.models()[1]]}


class TestTime:
    def test_an_unused_family_switches_itself_off(self, kept):
        kept.grow()
        kept.clock.at += 6 * DAY
        kept.family_models.note_use("local", "router")
        kept.tick_after(6 * DAY)
        assert kept.resolve("router")
        kept.tick_after(2 * DAY)
        told = kept.get()
        assert (told.switched_on, told.off_reason) == (False, "idle")

    def test_uses_within_a_second_are_written_together(self, kept):
        kept.grow()
        kept.clock.at += 10
        before = kept.lineages.read_now("local").revision
        for _ in range(50):
            kept.family_models.note_use("local", "router")
            kept.clock.at += 0.01
        kept.tick_after(1)
        kept.state.write_now(lambda connection: None)
        stored = kept.lineages.read_now("local")
        assert stored.revision == before + 2
        assert stored.lineage.families["router"].switch.used_at == pytest.approx(
            kept.clock.at - 1.01
        )

    def test_a_use_that_came_in_time_counts_though_it_is_written_late(self, kept):
        kept.grow()
        kept.clock.at += 7 * DAY
        kept.family_models.note_use("local", "router")
        kept.state.write_now(lambda connection: None)
        kept.service.tick()
        assert kept.get().switched_on

    def test_a_use_of_a_deleted_family_is_dropped(self, kept):
        kept.family_models.note_use("local", "nothing")
        kept.state.write_now(lambda connection: None)
        assert kept.lineage().families == {}

    def test_a_use_may_be_part_of_a_transaction(self, kept):
        kept.grow()
        kept.clock.at += 10
        use = functools.partial(kept.lineages.use_in, account_id="local", name="router")
        kept.lineages.follow(kept.state.write_now(use))
        assert kept.get().used_at == kept.clock.at
        before = kept.lineages.read_now("local").revision
        gone = functools.partial(kept.lineages.use_in, account_id="local", name="nothing")
        assert kept.state.write_now(gone).stored.revision == before

    def test_nothing_is_written_when_nothing_is_due(self, kept):
        kept.grow()
        revision = kept.lineages.read_now("local").revision
        for _ in range(3):
            kept.tick_after(1)
        assert kept.lineages.read_now("local").revision == revision

    def test_no_period_means_never(self, make_kept):
        kept = make_kept(idle_s=0.0)
        kept.grow()
        kept.tick_after(1000 * DAY)
        assert kept.get().switches_off_at is None
        assert kept.get().switched_on
