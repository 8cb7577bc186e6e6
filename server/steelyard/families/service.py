"""The families use cases: start, grow, switch, keep warm, roll back and delete lines of models.

Every change is one transaction with the record of its idempotency key; a refusal leaves the key
free.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from msgspec import UNSET, structs
from sqlalchemy import Connection

from steelyard import errors
from steelyard.caller import Caller
from steelyard.datasets.access import require_dataset
from steelyard.datasets.store import mark_dataset_used
from steelyard.datasets.versions import Manifest
from steelyard.evaluations.judges import Judges
from steelyard.families import wire
from steelyard.families.fine_tune_store import FINE_TUNES
from steelyard.families.fine_tune_wire import FineTuneEstimate, Job
from steelyard.families.fine_tuning.rows import TuningRows
from steelyard.families.lineage import continuing
from steelyard.families.lineage.deletion import delete_family
from steelyard.families.lineage.draft import LineageChange
from steelyard.families.lineage.fees import Fee, Tariff, fee_of
from steelyard.families.lineage.fine_tunes import Order, check_start, continue_family, start_family
from steelyard.families.lineage.lineage import (
    Conditions,
    Lineage,
    TunedFamily,
    base_under,
    learned_from,
    next_base,
    parent_of,
)
from steelyard.families.lineage.plan import TuningBasis, TuningPlan
from steelyard.families.lineage.references import check_latest, find_family
from steelyard.families.lineage.rollback import roll_back
from steelyard.families.lineage.switching import switch_family
from steelyard.families.lineage.warmth import keep_family_warm
from steelyard.families.lineage_store import Applied, Command, LineageStore
from steelyard.families.lineage_writes import LineageWrites
from steelyard.families.serializers import family_to_wire, fine_tune_to_wire
from steelyard.ids import new_id
from steelyard.ledger.money import to_usd
from steelyard.operations.idempotency import SECONDS_A_DAY
from steelyard.operations.write import Write
from steelyard.serving.registry import ModelRegistry
from steelyard.wire.violations import BODY

#: Seconds that a family's page waits for the price of its next fine-tune.
_PRICE_WAIT_S = 0.5


class FamilyService:
    """Answers for the families of every account."""

    def __init__(
        self,
        lineages: LineageStore,
        writes: LineageWrites,
        plans: TuningRows,
        bases: ModelRegistry,
        *,
        tariff: Tariff | None = None,
        judges: Judges | None = None,
        prepare: Callable[[], None] = lambda: None,
    ) -> None:
        self._lineages = lineages
        self._writes = writes
        self._plans = plans
        self._bases = bases
        self._tariff = tariff or Tariff()
        self._judges = judges
        #: Gets the process that trains ready while a fine-tune is planned.
        self._prepare = prepare

    async def start(self, write: Write, request: wire.StartFamily) -> Job:
        """Make a family and queue its first fine-tune."""
        await self._writes.replay_known(write)
        plan, origin = await self._plan_start(write.caller, request)
        warnings = await self._check_judges(write.caller, plan)
        order = self._order(plan)

        def command(lineage: Lineage, conditions: Conditions) -> LineageChange:
            return start_family(
                lineage,
                request.family,
                origin,
                order,
                conditions,
                max_price_usd=request.max_price_usd,
            )

        return await self._queue(write, command, order, warnings)

    async def estimate(self, caller: Caller, request: wire.EstimateFamily) -> FineTuneEstimate:
        """Return the price of starting a family."""
        plan, _ = await self._plan_start(caller, request)
        return self._estimate_to_wire(plan, await self._check_judges(caller, plan))

    async def continue_(self, write: Write, name: str, request: wire.ContinueFamily) -> Job:
        """Queue a family's next fine-tune."""
        await self._writes.replay_known(write)
        plan, growth = await self._plan_continue(write.caller, name, request)
        warnings = await self._check_judges(write.caller, plan)
        order = self._order(plan)

        def command(lineage: Lineage, conditions: Conditions) -> LineageChange:
            return continue_family(
                lineage,
                name,
                order,
                growth,
                conditions,
                latest=request.latest,
                max_price_usd=request.max_price_usd,
            )

        return await self._queue(write, command, order, warnings)

    async def estimate_continue(
        self, caller: Caller, name: str, request: wire.EstimateContinue
    ) -> FineTuneEstimate:
        """Return the price of continuing a family."""
        plan, _ = await self._plan_continue(caller, name, request)
        return self._estimate_to_wire(plan, await self._check_judges(caller, plan))

    async def page(self, caller: Caller) -> wire.FamilyList:
        """Return every family of the account by name, without counts of rows."""
        lineage = (await self._lineages.read(caller.account_id)).lineage
        families = [lineage.families[name] for name in sorted(lineage.families)]
        families = [family for family in families if family.deleted_at is None]
        grown = await asyncio.gather(
            *(
                self._plans.growth(caller, _basis_of(lineage, family), counted=False)
                for family in families
            )
        )
        conditions = self._lineages.view()
        return wire.FamilyList(
            data=[
                family_to_wire(lineage, family, conditions, growth=growth)
                for family, growth in zip(families, grown, strict=True)
            ]
        )

    async def get(self, caller: Caller, name: str) -> wire.Family:
        """Return a family with its fine-tunes, and the price of continuing it."""
        lineage = (await self._lineages.read(caller.account_id)).lineage
        family = find_family(lineage, name)
        growth = await self._plans.growth(caller, _basis_of(lineage, family))
        price_nano = await self._price_next(caller, lineage, family, growth)
        growth = structs.replace(growth, price_nano=price_nano)
        return family_to_wire(lineage, family, self._lineages.view(), growth=growth, with_jobs=True)

    async def forecast(self, caller: Caller, name: str, ahead: Manifest | None) -> wire.Continue:
        """Return the effect of continuing a family now, or with a next version of its dataset."""
        lineage = (await self._lineages.read(caller.account_id)).lineage
        family = find_family(lineage, name)
        if ahead is not None and ahead.dataset_id != family.dataset_id:
            raise errors.DatasetMismatchError(
                f"The draft is of the dataset {ahead.dataset_id}, and {name} grows on "
                f"{family.dataset_id}; name a draft of that."
            )
        growth = await self._plans.growth(caller, _basis_of(lineage, family), ahead=ahead)
        return continuing.continue_to_wire(lineage, family, growth, self._lineages.view())

    async def switch(self, write: Write, name: str, request: wire.SwitchFamily) -> wire.Family:
        """Switch a family on or off; the model that it is to serve is loaded and probed first."""

        def command(lineage: Lineage, conditions: Conditions) -> LineageChange:
            return switch_family(
                lineage,
                name,
                conditions,
                on=request.on,
                switch_off=request.switch_off or (),
                served=request.served,
            )

        return await self._change_family(write, name, command)

    async def keep_warm(self, write: Write, name: str, request: wire.KeepWarm) -> wire.Family:
        """Keep the model that a family serves loaded, or stop."""

        def command(lineage: Lineage, conditions: Conditions) -> LineageChange:
            return keep_family_warm(
                lineage,
                name,
                conditions,
                enabled=request.enabled,
                max_price_usd=request.max_price_usd,
                switch_off=request.switch_off or (),
                served=request.served,
            )

        return await self._change_family(write, name, command)

    async def roll_back(self, write: Write, name: str, request: wire.Rollback) -> wire.Family:
        """Take a family back to an older model and discard the newer ones."""

        def command(lineage: Lineage, conditions: Conditions) -> LineageChange:
            return roll_back(
                lineage, name, request.to, request.discard, conditions, served=request.served
            )

        return await self._change_family(write, name, command)

    async def delete(
        self, write: Write, name: str, request: wire.DeleteFamily
    ) -> wire.DeletedFamily:
        """Delete a family with its models, for good."""

        def command(lineage: Lineage, conditions: Conditions) -> LineageChange:
            return delete_family(
                lineage, name, conditions, dataset_id=request.dataset_id, latest=request.latest
            )

        return await self._writes.once(write, command, lambda *_: wire.DeletedFamily(id=name))

    def tick(self) -> None:
        """Do due work on every account, blocking; see ``LineageStore.tick``."""
        self._lineages.tick()

    @staticmethod
    def reader_of(connection: Connection, dataset_id: str) -> str | None:
        """Return the work that reads a dataset, as ``DatasetService.register_reader`` asks."""
        return "a fine-tune" if FINE_TUNES.has_unfinished(connection, dataset_id) else None

    async def _plan_start(
        self, caller: Caller, request: wire.StartFamily | wire.EstimateFamily
    ) -> tuple[TuningPlan, str]:
        lineage = (await self._lineages.read(caller.account_id)).lineage
        origin = request.from_ or self._bases.default.name
        start = check_start(lineage, request.family, origin, self._lineages.view())
        self._check_connected(start.base, request.hyperparameters)
        self._prepare()
        plan = await self._plans.plan(
            caller,
            TuningBasis(
                base=start.base,
                family=request.family,
                dataset_id=request.dataset_id,
                method=request.method or "sft",
                learned=learned_from(lineage, None if start.model is None else start.model.adapter),
            ),
            version=request.dataset_version,
            hyperparameters=request.hyperparameters,
        )
        return plan, origin

    async def _plan_continue(
        self, caller: Caller, name: str, request: wire.ContinueFamily | wire.EstimateContinue
    ) -> tuple[TuningPlan, continuing.NewRows]:
        lineage = (await self._lineages.read(caller.account_id)).lineage
        family = find_family(lineage, name)
        check_latest(lineage, family, request.latest)
        basis, version = _basis_of(lineage, family, request.base), request.dataset_version
        growth = await self._plans.growth(caller, basis, version=version)
        continuing.check_continue(
            lineage,
            family,
            growth,
            self._lineages.view(),
            dataset_version=version,
            base=request.base,
        )
        if basis.is_move:
            self._check_move(lineage, family, basis.base)
        self._check_connected(basis.base, request.hyperparameters)
        self._prepare()
        plan = await self._plans.plan(
            caller, basis, version=version, hyperparameters=request.hyperparameters
        )
        return plan, plan.growth

    def _check_move(self, lineage: Lineage, family: TunedFamily, base: str) -> None:
        """Refuse another base model where that, or the one under the latest model, is elsewhere."""
        parent = parent_of(lineage, family)
        present = base_under(lineage, family, parent)
        refused = None
        if self._bases.get(base).is_route:
            refused = (
                f"{base} is a route, which has no answers of its own to train on; name a base model "
                "that runs here."
            )
        elif self._bases.get(base).is_connected:
            refused = (
                f"{base} answers on another server, and a family is moved to base models that run "
                "here alone; start a new family from it."
            )
        elif parent is not None and self._bases.get(present).is_connected:
            refused = (
                f"{family.name} is trained on {present}, which answers on another server, and is "
                f"not moved from there; start a new family from {base}."
            )
        if refused is not None:
            raise errors.InvalidReferenceError(refused, path=(*BODY, "base"))

    def _check_connected(self, name: str, given: wire.Hyperparameters | None) -> None:
        """Refuse a route, LoRA on a base of another server, and one that would not answer now."""
        base = self._bases.get(name)
        if not base.is_connected:
            return
        if base.is_route:
            raise errors.InvalidRequestError.at(
                (*BODY, "from"),
                f"from is {name!r}, a route, which has no answers of its own to train on; "
                "start from one of its models.",
                "not_allowed",
            )
        if given is not None and given.first:
            raise errors.InvalidRequestError.at(
                (*BODY, "hyperparameters", "first"),
                f"first is {given.first!r}, and {name} answers on another server, which is asked about "
                "every row before anything is trained; leave first out.",
                "not_allowed",
            )
        if given is not None and given.lora_rank:
            raise errors.InvalidRequestError.at(
                (*BODY, "hyperparameters", "lora_rank"),
                f"lora_rank is {given.lora_rank}, and {name} answers on another server, where "
                "it cannot be adapted; leave lora_rank out: heads are trained on its answers.",
                "not_allowed",
            )
        if not base.can_answer:
            raise errors.EngineUnavailableError(
                f"The server of {name} did not answer a short while ago; look at it with "
                f"'steelyard model check {name}', and start the fine-tune again."
            )

    async def _price_next(
        self, caller: Caller, lineage: Lineage, family: TunedFamily, growth: continuing.NewRows
    ) -> int | None:
        """Return the default fee of the next fine-tune; ``None`` while the tokens of its rows are counted."""
        if self._tariff == Tariff():
            return 0
        if continuing.continue_state(lineage, family, growth, self._lineages.view()) not in {
            "new_data",
            "retry",
        }:
            return None
        with suppress(errors.SteelyardError, TimeoutError):
            async with asyncio.timeout(_PRICE_WAIT_S):
                plan = await self._plans.plan(caller, _basis_of(lineage, family))
            return self._fee(plan).price_nano
        return None

    def _fee(self, plan: TuningPlan) -> Fee:
        return fee_of(plan.trained_tokens, self._tariff)

    def _order(self, plan: TuningPlan) -> Order:
        return Order(id=new_id("ftj"), plan=plan, price_nano=self._fee(plan).price_nano)

    async def _check_judges(self, caller: Caller, plan: TuningPlan) -> list[str]:
        """Return what speaks against the models whose labels the gate counts, or refuse them."""
        if self._judges is None:
            return []
        origins = plan.hyperparameters.judged_by
        return await self._judges.check_rows(
            caller,
            plan.dataset_id,
            plan.dataset_version,
            path=(*BODY, "hyperparameters", "judged_by"),
            judged=[plan.base],
            origins=None if origins is UNSET else origins,
        )

    def _estimate_to_wire(self, plan: TuningPlan, warnings: list[str]) -> FineTuneEstimate:
        fee = self._fee(plan)
        return FineTuneEstimate(
            price_usd=to_usd(fee.price_nano),
            minimum_applied=fee.is_minimum,
            trained_tokens=plan.trained_tokens,
            steps=plan.hyperparameters.steps,
            seed=plan.hyperparameters.seed,
            passes=plan.passes,
            train_rows=plan.split.train_rows,
            rows=plan.rows,
            dataset_version=plan.dataset_version,
            warnings=warnings or UNSET,
        )

    async def _queue(
        self, write: Write, command: Command, order: Order, warnings: list[str]
    ) -> Job:
        def tell(connection: Connection, applied: Applied) -> Job:
            # In the transaction, so that no dataset is deleted under a fine-tune that waits.
            require_dataset(
                connection, write.caller.account_id, order.plan.dataset_id, is_new_work=True
            )
            mark_dataset_used(connection, order.plan.dataset_id, applied.conditions.now)
            return fine_tune_to_wire(applied.lineage.jobs[order.id], warnings=warnings or UNSET)

        return await self._writes.once(write, command, tell, window_s=SECONDS_A_DAY)

    async def _change_family(self, write: Write, name: str, command: Command) -> wire.Family:
        def tell(_: Connection, applied: Applied) -> wire.Family:
            family = applied.lineage.families[name]
            return family_to_wire(applied.lineage, family, applied.conditions)

        # Sent again, the command names the remedy for a model that cannot be loaded.
        return await self._writes.loading(
            write.caller, lambda: self._writes.once(write, command, tell)
        )


def _basis_of(lineage: Lineage, family: TunedFamily, requested: str | None = None) -> TuningBasis:
    """Return the base and dataset of a family's next fine-tune, on the requested base if any."""
    base = next_base(lineage, family, requested)
    return TuningBasis(
        base=base,
        is_move=base != next_base(lineage, family),
        family=family.name,
        dataset_id=family.dataset_id,
        method=family.method,
        trained_version=continuing.trained_version(lineage, family),
        learned=learned_from(lineage, parent_of(lineage, family)),
        dataset_path=("path", "family"),
    )
