"""The families use cases: start, grow, switch, keep warm, roll back and delete lines of models.

Every change is one transaction with the record of its idempotency key; a refusal leaves the key
free. Here: what callers send and get. Not here: which change is allowed when
(``steelyard.families``), how it is kept (``steelyard.services.lines``), which rows a fine-tune
takes (``steelyard.services.tuning_rows``), nor what becomes of it (``steelyard.services.fine_tunes``).
"""

from __future__ import annotations

import asyncio

import msgspec
from msgspec import Struct
from sqlalchemy import Connection

from steelyard.billing.money import to_usd
from steelyard.families import line
from steelyard.families.ancestry import learned_from, parent_of
from steelyard.families.continuing import Growth, check_continue, trained_version
from steelyard.families.deletion import delete_family
from steelyard.families.draft import Change
from steelyard.families.fees import Fee, Tariff, fee_of
from steelyard.families.fine_tunes import Order, check_start, continue_family, start_family
from steelyard.families.line import Conditions, Lines
from steelyard.families.references import (
    check_latest,
    find_family,
)
from steelyard.families.rollback import roll_back
from steelyard.families.switching import switch_family
from steelyard.families.views import tell_family, tell_job
from steelyard.families.warmth import keep_family_warm
from steelyard.ids import new_id
from steelyard.services.caller import Caller
from steelyard.services.dataset_access import require_dataset
from steelyard.services.family_models import FamilyModels
from steelyard.services.family_plans import Plans
from steelyard.services.family_writes import digest_of, read_request
from steelyard.services.idempotency import SECONDS_A_DAY, KeyedWrites, payload_sha256
from steelyard.services.lines import Applied, Command, LineKeeper
from steelyard.services.models import ModelRegistry
from steelyard.services.reply import Reply
from steelyard.services.tuning_plan import TuningPlan
from steelyard.storage.state import State
from steelyard.storage.state.datasets import mark_dataset_used
from steelyard.storage.state.fine_tunes import has_unfinished
from steelyard.wire.families import (
    ContinueFamily,
    DeletedFamily,
    DeleteFamily,
    EstimateContinue,
    EstimateFamily,
    Family,
    FamilyList,
    KeepWarm,
    Rollback,
    StartFamily,
    SwitchFamily,
)
from steelyard.wire.fine_tuning import FineTuneEstimate

START_ROUTE = "POST /v1/families"
CONTINUE_ROUTE = "POST /v1/families/{family}/continue"
SWITCH_ROUTE = "POST /v1/families/{family}/switch"
KEEP_WARM_ROUTE = "POST /v1/families/{family}/keep-warm"
ROLLBACK_ROUTE = "POST /v1/families/{family}/rollback"
DELETE_ROUTE = "DELETE /v1/families/{family}"


class FamilyService(FamilyModels):
    """Answers for the families of every account, and for their models.

    Parameters
    ----------
    state : State
        Where they are.
    keeper : LineKeeper
        Changes and reads them.
    writes : KeyedWrites
        Writes once per idempotency key.
    plans : Plans
        Knows the rows of datasets.
    bases : ModelRegistry
        The base models.
    tariff : Tariff, optional
        What a fine-tune costs; free when left out.
    warm_wait_s : float, optional
        How long a switch waits for a model to load, in seconds.
    """

    def __init__(
        self,
        state: State,
        keeper: LineKeeper,
        writes: KeyedWrites,
        plans: Plans,
        bases: ModelRegistry,
        *,
        tariff: Tariff | None = None,
        warm_wait_s: float = 10.0,
    ) -> None:
        super().__init__(state, keeper, writes, bases, warm_wait_s=warm_wait_s)
        self._plans = plans
        self._tariff = tariff or Tariff()

    async def start(self, caller: Caller, payload: bytes, key: str | None) -> Reply:
        """Make a family and queue its first fine-tune; a ``Job``.

        Parameters
        ----------
        caller : Caller
            Whose it will be.
        payload : bytes
            The JSON body, a ``StartFamily``.
        key : str or None
            The idempotency key.

        Raises
        ------
        steelyard.errors.InvalidRequestError
            When fields are invalid; ``details`` has every one of them.
        steelyard.errors.SteelyardError
            As ``steelyard.families.fine_tunes.start_family`` and ``Plans.plan`` raise. Nothing is
            queued or held then.
        """
        request = await read_request(payload, StartFamily)
        digest = payload_sha256(msgspec.to_builtins(request))
        known = await self._writes.find(caller, route=START_ROUTE, key=key, payload_sha256=digest)
        if known is not None:
            return known
        plan, origin = await self._plan_start(caller, request)
        order = self._order(plan)

        def command(lines: Lines, conditions: Conditions) -> Change:
            return start_family(
                lines,
                request.family,
                origin,
                order,
                conditions,
                max_price_usd=request.max_price_usd,
            )

        return await self._queue(caller, START_ROUTE, key, digest, command, order)

    async def estimate(self, caller: Caller, payload: bytes) -> FineTuneEstimate:
        """Say what starting a family would cost; raises as ``start``, but for queues and credit."""
        request = await read_request(payload, EstimateFamily)
        plan, _ = await self._plan_start(caller, request)
        return self._tell_estimate(plan)

    async def continue_(self, caller: Caller, name: str, payload: bytes, key: str | None) -> Reply:
        """Queue a family's next fine-tune; a ``Job``.

        Parameters
        ----------
        caller : Caller
            Whose it must be.
        name : str
            The family.
        payload : bytes
            The JSON body, a ``ContinueFamily``.
        key : str or None
            The idempotency key.

        Raises
        ------
        steelyard.errors.InvalidRequestError
            When fields are invalid; ``details`` has every one of them.
        steelyard.errors.SteelyardError
            As ``steelyard.families.fine_tunes.continue_family`` and ``Plans.plan`` raise. Nothing
            is queued or held then.
        """
        request = await read_request(payload, ContinueFamily)
        digest = digest_of(name, request)
        known = await self._writes.find(
            caller, route=CONTINUE_ROUTE, key=key, payload_sha256=digest
        )
        if known is not None:
            return known
        plan, growth = await self._plan_continue(caller, name, request)
        order = self._order(plan)

        def command(lines: Lines, conditions: Conditions) -> Change:
            return continue_family(
                lines,
                name,
                order,
                growth,
                conditions,
                latest=request.latest,
                max_price_usd=request.max_price_usd,
            )

        return await self._queue(caller, CONTINUE_ROUTE, key, digest, command, order)

    async def estimate_continue(
        self, caller: Caller, name: str, payload: bytes
    ) -> FineTuneEstimate:
        """Say what continuing a family would cost; raises as ``continue_``, but for queues."""
        request = await read_request(payload, EstimateContinue)
        plan, _ = await self._plan_continue(caller, name, request)
        return self._tell_estimate(plan)

    async def page(self, caller: Caller) -> FamilyList:
        """Give every family of the account by name, without counts of rows."""
        lines = (await self._keeper.read(caller.account_id)).lines
        families = [lines.families[name] for name in sorted(lines.families)]
        families = [family for family in families if family.deleted_at is None]
        grown = await asyncio.gather(
            *(self._growth(caller, lines, family, counted=False) for family in families)
        )
        conditions = self._keeper.view()
        return FamilyList(
            data=[
                tell_family(lines, family, conditions, growth=growth)
                for family, growth in zip(families, grown, strict=True)
            ]
        )

    async def get(self, caller: Caller, name: str) -> Family:
        """Give a family with its fine-tunes, and what continuing it would take.

        Raises
        ------
        steelyard.errors.NotFoundError, steelyard.errors.FamilyDeletedError
            When there is none.
        """
        lines = (await self._keeper.read(caller.account_id)).lines
        family = find_family(lines, name)
        growth = await self._growth(caller, lines, family, counted=True)
        return tell_family(lines, family, self._keeper.view(), growth=growth, with_jobs=True)

    async def switch(self, caller: Caller, name: str, payload: bytes, key: str | None) -> Reply:
        """Switch a family on or off; a ``Family``.

        A model that it is to serve is loaded and probed first.

        Raises
        ------
        steelyard.errors.InvalidRequestError
            When fields are invalid; ``details`` has every one of them.
        steelyard.errors.ModelWarmingError
            When the model is still loading after the wait; nothing was switched.
        steelyard.errors.SteelyardError
            As ``steelyard.families.switching.switch_family`` raises.
        """
        request = await read_request(payload, SwitchFamily)

        def command(lines: Lines, conditions: Conditions) -> Change:
            return switch_family(
                lines,
                name,
                conditions,
                on=request.on,
                switch_off=request.switch_off or (),
                served=request.served,
            )

        return await self._change_family(caller, SWITCH_ROUTE, name, request, key, command)

    async def keep_warm(self, caller: Caller, name: str, payload: bytes, key: str | None) -> Reply:
        """Keep the model that a family serves loaded, or stop; a ``Family``.

        Raises
        ------
        steelyard.errors.InvalidRequestError
            When fields are invalid; ``details`` has every one of them.
        steelyard.errors.SteelyardError
            As ``steelyard.families.warmth.keep_family_warm`` raises.
        """
        request = await read_request(payload, KeepWarm)

        def command(lines: Lines, conditions: Conditions) -> Change:
            return keep_family_warm(
                lines,
                name,
                conditions,
                enabled=request.enabled,
                max_price_usd=request.max_price_usd,
                switch_off=request.switch_off or (),
                served=request.served,
            )

        return await self._change_family(caller, KEEP_WARM_ROUTE, name, request, key, command)

    async def roll_back(self, caller: Caller, name: str, payload: bytes, key: str | None) -> Reply:
        """Take a family back to an older model and discard the newer ones; a ``Family``.

        Raises
        ------
        steelyard.errors.InvalidRequestError
            When fields are invalid; ``details`` has every one of them.
        steelyard.errors.SteelyardError
            As ``steelyard.families.rollback.roll_back`` raises.
        """
        request = await read_request(payload, Rollback)

        def command(lines: Lines, conditions: Conditions) -> Change:
            return roll_back(
                lines, name, request.to, request.discard, conditions, served=request.served
            )

        return await self._change_family(caller, ROLLBACK_ROUTE, name, request, key, command)

    async def delete(self, caller: Caller, name: str, payload: bytes, key: str | None) -> Reply:
        """Delete a family with its models, for good; a ``DeletedFamily``.

        Parameters
        ----------
        payload : bytes
            The JSON body, a ``DeleteFamily``; may be empty.

        Raises
        ------
        steelyard.errors.InvalidRequestError
            When fields are invalid; ``details`` has every one of them.
        steelyard.errors.SteelyardError
            As ``steelyard.families.deletion.delete_family`` raises.
        """
        request = await read_request(payload if payload.strip() else b"{}", DeleteFamily)

        def command(lines: Lines, conditions: Conditions) -> Change:
            return delete_family(
                lines, name, conditions, dataset_id=request.dataset_id, latest=request.latest
            )

        def tell(_: Connection, __: Applied) -> Struct:
            return DeletedFamily(id=name)

        digest = digest_of(name, request)
        return await self._write(caller, DELETE_ROUTE, key, digest, command, tell)

    def note_use(self, account_id: str, name: str) -> None:
        """Move the idle clock of a family or a number that was called; returns at once.

        Parameters
        ----------
        account_id : str
            Whose.
        name : str
            As the call named it; production calls and evaluations by name are uses.
        """
        self._keeper.note_use(account_id, name)

    def tick(self) -> None:
        """Do what is due on every account, blocking; see ``LineKeeper.tick``."""
        self._keeper.tick()

    @staticmethod
    def reader_of(connection: Connection, dataset_id: str) -> str | None:
        """Say what still reads a dataset, as ``DatasetService.register_reader`` asks."""
        return "a fine-tune" if has_unfinished(connection, dataset_id) else None

    async def _plan_start(
        self, caller: Caller, request: StartFamily | EstimateFamily
    ) -> tuple[TuningPlan, str]:
        lines = (await self._keeper.read(caller.account_id)).lines
        origin = request.from_ or self._bases.default.name
        start = check_start(lines, request.family, origin, self._keeper.view())
        plan = await self._plans.plan(
            caller,
            base=start.base,
            family=request.family,
            dataset_id=request.dataset_id,
            version=request.dataset_version,
            trained_version=None,
            method=request.method or "sft",
            hyperparameters=request.hyperparameters,
            learned=learned_from(lines, None if start.model is None else start.model.adapter),
            is_free=self._is_free,
        )
        return plan, origin

    async def _plan_continue(
        self, caller: Caller, name: str, request: ContinueFamily | EstimateContinue
    ) -> tuple[TuningPlan, Growth]:
        lines = (await self._keeper.read(caller.account_id)).lines
        family = find_family(lines, name)
        check_latest(lines, family, request.latest)
        growth = await self._growth(
            caller, lines, family, counted=True, version=request.dataset_version
        )
        check_continue(
            lines, family, growth, self._keeper.view(), dataset_version=request.dataset_version
        )
        plan = await self._plans.plan(
            caller,
            base=family.base,
            family=name,
            dataset_id=family.dataset_id,
            version=request.dataset_version,
            trained_version=trained_version(lines, family),
            method=family.method,
            hyperparameters=request.hyperparameters,
            learned=learned_from(lines, parent_of(lines, family)),
            is_free=self._is_free,
        )
        return plan, plan.growth

    async def _growth(
        self,
        caller: Caller,
        lines: Lines,
        family: line.Family,
        *,
        counted: bool,
        version: int | None = None,
    ) -> Growth:
        return await self._plans.growth(
            caller,
            dataset_id=family.dataset_id,
            method=family.method,
            trained_version=trained_version(lines, family),
            version=version,
            learned=learned_from(lines, parent_of(lines, family)) if counted else (),
            counted=counted,
            is_free=self._is_free,
        )

    @property
    def _is_free(self) -> bool:
        return self._tariff == Tariff()

    def _fee(self, plan: TuningPlan) -> Fee:
        return fee_of(plan.trained_tokens, self._tariff)

    def _order(self, plan: TuningPlan) -> Order:
        return Order(
            id=new_id("ftj"),
            dataset_id=plan.dataset_id,
            dataset_version=plan.dataset_version,
            method=plan.method,
            hyperparameters=plan.hyperparameters,
            split=plan.split,
            lineage=plan.lineage,
            max_questions=plan.max_questions,
            price_nano=self._fee(plan).price_nano,
        )

    def _tell_estimate(self, plan: TuningPlan) -> FineTuneEstimate:
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
        )

    async def _queue(
        self,
        caller: Caller,
        route: str,
        key: str | None,
        digest: str,
        command: Command,
        order: Order,
    ) -> Reply:
        def tell(connection: Connection, applied: Applied) -> Struct:
            # In the transaction, so that no dataset is deleted under a fine-tune that waits.
            require_dataset(connection, caller.account_id, order.dataset_id, is_new_work=True)
            mark_dataset_used(connection, order.dataset_id, applied.conditions.now)
            return tell_job(applied.lines.jobs[order.id])

        return await self._write(caller, route, key, digest, command, tell, window_s=SECONDS_A_DAY)

    async def _change_family(
        self,
        caller: Caller,
        route: str,
        name: str,
        request: Struct,
        key: str | None,
        command: Command,
    ) -> Reply:
        def tell(_: Connection, applied: Applied) -> Struct:
            family = applied.lines.families[name]
            return tell_family(applied.lines, family, applied.conditions)

        return await self._loading(
            caller,
            lambda: self._write(caller, route, key, digest_of(name, request), command, tell),
        )

        # Given again, the command says what to do about a model that cannot be loaded.
