"""One turn of a growth: the next step of a named decision, and whether it may be taken.

Every step is one of another room: rows of feedback, fine-tunes with their gate, shadows, comparisons,
moves and alarms. A turn takes those that are ready, and names the condition of the next one.
"""

from __future__ import annotations

import asyncio
from decimal import Decimal

from msgspec import UNSET, UnsetType
from msgspec.structs import replace
from sqlalchemy import Connection

from steelyard import errors
from steelyard.alarms.store import active_alarms
from steelyard.caller import Caller
from steelyard.datasets.from_feedback import FeedbackRows
from steelyard.datasets.from_feedback_wire import DatasetFromFeedback, RowsFromFeedback
from steelyard.datasets.service import DatasetService
from steelyard.decision_log.store import AnswerCriteria
from steelyard.decision_log.withheld import describe_withheld
from steelyard.decisions.named import PRODUCTION, PROPOSED
from steelyard.evaluations.judges import Judges
from steelyard.evaluations.wire import Change
from steelyard.families.bounds import FamilyBounds
from steelyard.families.service import FamilyService
from steelyard.families.wire import AbstainOnNovel, Continue, ContinueFamily, Family, StartFamily
from steelyard.growth import learning, wire
from steelyard.growth.evidence import measure_error, put_sure_answers, read_sides
from steelyard.growth.state import MOST_STEPS, GrowthCandidate, GrowthState, subject_of
from steelyard.house import House
from steelyard.named.compare_service import NamedComparisons
from steelyard.named.comparison_wire import CompareVersions, NamedComparison
from steelyard.named.content import read_content
from steelyard.named.service import NamedDecisions
from steelyard.named.wire import (
    AddNamedVersion,
    MoveAlias,
    NamedVersion,
)
from steelyard.operations.write import Write
from steelyard.proof.margins import is_as_right, lower_end
from steelyard.serving.registry import ModelRegistry
from steelyard.shadows.service import Shadows
from steelyard.wire.jobs import UNFINISHED
from steelyard.wire.violations import BODY

#: How many more rows there have to be before the curve is drawn again.
_ANEW = 1.2
#: Alarms that send a decision back: that its texts or answers are others, or are right less often.
_DRIFT = frozenset({"shares", "accuracy", "log_loss", "calibration", "contexts"})


class Turn:
    """A turn of one growth, which changes its state."""

    def __init__(
        self,
        house: House,
        caller: Caller,
        name: str,
        policy: wire.SetGrowth,
        state: GrowthState,
        now: float,
    ) -> None:
        self._house, self._caller, self._name = house, caller, name
        self._policy, self._state, self._now = policy, state, now
        self._family = policy.family or name
        self._named = house.get(NamedDecisions)
        self._write = Write(caller, "growth")
        #: What speaks against the model whose sure answers become rows.
        self._doubts: list[str] = []

    async def take(self) -> None:
        """Take the steps that are ready."""
        decision = await self._named.get(self._caller, self._name)
        if decision.archived_at is not None or decision.dataset_id is None:
            self._wait(self._state.stage, "It is archived, or has no dataset any more.")
            return
        production = await self._named.version(self._caller, self._name, PRODUCTION)
        await self._gather(decision.dataset_id, production)
        if self._policy.policy == "rows":
            self._wait("gathering", "Its policy allows to gather rows alone.")
            return
        family = await self._find_family()
        if production.model == self._family:
            await self._watch(production)
            if family is not None and self._state.stage == "moved":
                await self._continue(family)
            return
        if self._state.stage == "moved":
            self._step("demoted", "Production was moved back to another model.")
            self._state.candidate = None
        if not await self._train(decision.dataset_id, family, production):
            assert family is not None  # noqa: S101  there is one where nothing is trained
            await self._propose(family, production)

    # Rows

    async def _gather(self, dataset_id: str, production: NamedVersion) -> None:
        rows = self._house.get(FeedbackRows)
        by_people = RowsFromFeedback(dataset_id=dataset_id, named=self._name)
        requests = [by_people]
        if self._policy.judge_rows is not None:
            await asyncio.to_thread(
                put_sure_answers,
                self._house.state,
                AnswerCriteria(account_id=self._caller.account_id, named=self._name),
                at_least=self._policy.judge_rows,
                excluded=await self._excluded(production),
                now=self._now,
            )
            # The gate must not measure how far a family agrees with the version that it is to replace.
            requests.append(replace(by_people, by="model"))
        n_without_text = 0
        for request in requests:
            try:
                made = await rows.to_dataset(
                    self._write, request, is_training=request.by is not None
                )
            except errors.NoNewRowsError as refusal:
                n_without_text = max(n_without_text, refusal.n_without_text)
                continue
            if not isinstance(made, DatasetFromFeedback):
                continue
            n_without_text = max(n_without_text, made.feedback.without_text)
            origin = "of the model's own sure answers" if request.by else "of feedback"
            n = made.feedback.added
            self._step(self._state.stage, f"{n} rows {origin} were added, {made.rows} in all.")
        self._doubts += describe_withheld(n_without_text, "make no rows")

    async def _excluded(self, production: NamedVersion) -> set[str]:
        """Return the models whose sure answers become no rows; the family's would teach it itself."""
        judges = self._house.get(Judges)
        model = production.model or self._house.get(ModelRegistry).default.name
        try:
            self._doubts = await judges.check(
                self._caller,
                {model: (*BODY, "judge_rows")},
                production.decisions,
                judged=[self._family],
                verb="takes sure answers of",
            )
        except errors.InvalidRequestError as error:
            self._doubts = [error.message]
        doubtful = await judges.doubts(production.decisions) if judges.must_qualify else ()
        return {self._family, *doubtful}

    # Training

    async def _find_family(self) -> Family | None:
        try:
            return await self._house.get(FamilyService).get(self._caller, self._family)
        except errors.NotFoundError:
            return None

    async def _train(
        self, dataset_id: str, family: Family | None, production: NamedVersion
    ) -> bool:
        """Train where there is enough; whether the growth waits for that or for rows."""
        if self._waits_for_job(family):
            return True
        candidate = self._state.candidate
        serves = family is not None and family.served is not None
        if serves and (candidate is None or candidate.outcome is None):
            return False
        dataset = await self._house.get(DatasetService).get(self._caller, dataset_id)
        n_new = dataset.split.training if family is None else _new_rows(family)
        if n_new < self._policy.at_least:
            if serves and candidate is not None and candidate.outcome != "refused":
                return False
            waits = f"{n_new} of {self._policy.at_least} new training rows are there."
            self._wait(_unless_ended(self._state.stage), waits + self._why_not())
            return True
        estimated = await self._estimate(dataset_id, dataset.split.training, production)
        if estimated is not None and estimated.chance >= learning.ENOUGH:
            await self._start(dataset_id, family, estimated)
        elif estimated is not None:
            self._wait(_unless_ended(self._state.stage), _waits_for_rows(estimated))
        return True

    async def _start(
        self, dataset_id: str, family: Family | None, estimated: wire.LearningEstimate
    ) -> None:
        families = self._house.get(FamilyService)
        price = self._policy.max_price_usd
        if family is None:
            request = StartFamily(family=self._family, dataset_id=dataset_id, max_price_usd=price)
            job = await families.start(self._write, request)
        else:
            grow = ContinueFamily(max_price_usd=price)
            job = await families.continue_(self._write, self._family, grow)
        self._state.candidate = None
        why = f"{job.id} of {estimated.rows} rows: {estimated.chance:.0%} chance to pass."
        self._step("training", f"Trains {self._family} with {why}{_append(job.warnings)}")
        self._wait("training", f"The fine-tune {job.id} and its gate.")

    def _waits_for_job(self, family: Family | None) -> bool:
        job = family.jobs[0] if family is not None and family.jobs else None
        if job is not None and job.status in UNFINISHED:
            self._wait("training", f"The fine-tune {job.id} is {job.status}.")
            return True
        if self._state.stage == "training" and job is not None:
            if job.outcome == "joined":
                if family is not None and family.served is None:
                    self._wait("training", f"{self._family} is being loaded.")
                    return True
            else:
                ended = job.reason or job.outcome or job.status
                self._step("refused", f"The fine-tune {job.id} made no model: {ended}")
        return False

    async def _continue(self, family: Family) -> None:
        """Train a family that serves production on new rows; its own gate decides about the model."""
        if self._waits_for_job(family) or _new_rows(family) < self._policy.at_least:
            return
        request = ContinueFamily(max_price_usd=self._policy.max_price_usd)
        job = await self._house.get(FamilyService).continue_(self._write, self._family, request)
        self._step("moved", f"Trains {self._family} further with {job.id}, behind its own gate.")

    def _why_not(self) -> str:
        return f" {self._state.steps[0].message}" if self._state.stage == "refused" else ""

    async def _estimate(
        self, dataset_id: str, n_rows: int, production: NamedVersion
    ) -> wire.LearningEstimate | None:
        """Return the learning curve's estimate; ``None``, with the reason to wait, where there is none yet."""
        last = self._state.estimate
        if last is not None and n_rows < last.rows * _ANEW and last.chance < learning.ENOUGH:
            return last
        model = production.model or self._house.get(ModelRegistry).default.name
        criteria = AnswerCriteria(account_id=self._caller.account_id, named=self._name, model=model)
        measured = await asyncio.to_thread(measure_error, self._house.state, criteria)
        if measured is None:
            self._wait(
                "gathering",
                f"Fewer than {learning.MIN_EVALUATION} answers of {model} have feedback on them.",
            )
            return None
        datasets = self._house.get(DatasetService)
        at = await datasets.dataset_at(self._caller, dataset_id)
        embed = self._house.get(ModelRegistry).default.embed
        decisions = [str(each["id"]) for each in production.decisions]
        sides = await asyncio.to_thread(read_sides, datasets, at, decisions, embed)
        if not sides:
            n_evaluation = at.manifest.rows_of("evaluation")
            self._wait(
                "gathering",
                f"A learning curve needs {learning.MIN_ROWS} training rows and {learning.MIN_EVALUATION} held-out ones "
                f"with labels; there are {n_rows} and {n_evaluation}.",
            )
            return None
        estimated = await asyncio.to_thread(
            learning.estimate,
            sides,
            measured,
            margin=self._policy.margin,
            n_comparisons=self._state.n_comparisons + 1,
        )
        self._state.estimate = estimated
        self._step(
            _unless_ended(self._state.stage),
            f"On {estimated.rows} training rows a family would be wrong in {estimated.error:.1%}, "
            f"{model} is in {estimated.model_error.value:.1%}: {estimated.chance:.0%} chance to pass.",
        )
        return estimated

    # Towards production

    async def _propose(self, family: Family, production: NamedVersion) -> None:
        candidate = self._state.candidate
        assert family.served is not None  # noqa: S101  it serves a model
        if (
            candidate is None
            or candidate.ref != family.served.ref
            or candidate.before != production.version
        ):
            candidate = await self.begin(family.served.ref, production)
        if candidate.outcome == "proposed":
            self._wait_for_move(candidate)
        if candidate.outcome is not None:
            return
        if candidate.comparison_id is None:
            if not await self._is_shadowed(candidate):
                return
            request = CompareVersions(
                decision=self._name,
                version=candidate.version,
                rows=1_000,
                max_price_usd=self._policy.max_price_usd,
            )
            made = await self._house.get(NamedComparisons).create(self._write, request)
            candidate.comparison_id = made.id
            self._state.n_comparisons += 1
            compares = f"Compares version {candidate.version} with production: {made.id}."
            self._step("comparing", compares + _append(made.warnings))
        comparison = await self._house.get(NamedComparisons).get(
            self._caller, candidate.comparison_id
        )
        if comparison.status in UNFINISHED:
            self._wait("comparing", f"The comparison {comparison.id} is {comparison.status}.")
        else:
            await self._judge(candidate, comparison)

    async def begin(self, ref: str, production: NamedVersion) -> GrowthCandidate:
        """Make a version that asks the family, and let that answer along."""
        model = production.model or self._house.get(ModelRegistry).default.name
        request = AbstainOnNovel(false_alarms=self._policy.novel)
        novel = f"texts unlike its rows go back to {model}"
        try:
            await self._house.get(FamilyBounds).abstain_on_novel(self._write, self._family, request)
        except errors.NoveltyUnknownError:
            novel = "it cannot tell texts unlike its rows"
        content = production.content | {
            "model": self._family,
            "fallback": [model],
            "escalate": True,
            "note": f"asks the family {self._family}, then {model}",
        }
        added = await self._named.add_version(
            self._write, self._name, read_content(content, AddNamedVersion)
        )
        since = self._now
        if self._policy.shadow:
            since = await self._house.get(Shadows).put_beside(
                self._caller, subject_of(self._name), self._family, 1.0
            )
        candidate = GrowthCandidate(ref, added.version, production.version, since)
        self._state.candidate = candidate
        self._step(
            "shadowing",
            f"{ref} passed its gate and answers along as version {added.version}; {novel}.",
        )
        return candidate

    async def _is_shadowed(self, candidate: GrowthCandidate) -> bool:
        """Whether the family answered enough along, and nothing that came true speaks against it."""
        n_needed = self._policy.shadow
        if not n_needed:
            return True
        n, figures = await self._house.get(Shadows).figures(
            self._caller, subject_of(self._name), candidate.since
        )
        if n < n_needed:
            self._wait(
                "shadowing", f"{n} of {n_needed} answers were given along by {candidate.ref}."
            )
            return False
        words = [
            f"{name}: {each.agreement.value:.1%} the same, right {each.both_right + each.shadow_right}"
            f" of {each.observed} and {each.both_right + each.family_right} before"
            for name, each in figures.items()
        ]
        self._step("shadowing", f"{n} answers along. {'; '.join(words)}.")
        return True

    async def _judge(self, candidate: GrowthCandidate, comparison: NamedComparison) -> None:
        """Propose or move to a family that is as right within the margin, at a lower price."""
        result = comparison.result
        if result is None or result.price is None or result.rows is None:
            candidate.outcome = "refused"
            why = comparison.error or "it had no held-out rows to ask about."
            self._step("refused", f"The comparison {comparison.id} says nothing: {why}")
            return
        changes = [each.right for each in result.rows.decisions if each.right is not None]
        n_comparisons, margin = self._state.n_comparisons, self._policy.margin
        lows = [
            (lower_end(each.change, _low(each), n_comparisons), each.change) for each in changes
        ]
        low, change = min(lows, default=(-1.0, -1.0))
        judged = wire.GrowthComparison(
            comparison_id=comparison.id,
            verdict=result.verdict,
            right_change=change,
            right_low=low,
            margin=margin,
            n_comparisons=n_comparisons,
            usd_before=result.price.usd_before,
            usd_after=result.price.usd_after,
            is_as_right=bool(changes)
            and all(
                is_as_right(each.change, _low(each), margin=margin, n_comparisons=n_comparisons)
                for each in changes
            ),
            is_cheaper=_is_cheaper(comparison),
        )
        self._state.comparison = judged
        await self._house.get(Shadows).end_beside(self._caller, subject_of(self._name))
        figures = (
            f"right {change * 100:+.1f} points, {low * 100:+.1f} at the lower end against a margin of "
            f"{-margin * 100:.1f}; 1,000 requests {judged.usd_after} USD, {judged.usd_before} before; "
            f"the gate {result.verdict}"
        )
        if not (judged.is_as_right and judged.is_cheaper and result.verdict == "passed"):
            candidate.outcome = "refused"
            self._step("refused", f"Version {candidate.version} stays out: {figures}.")
            self._wait("refused", f"{self._policy.at_least} new training rows. {figures}.")
            return
        may_move = self._policy.policy == "move"
        alias = PRODUCTION if may_move else PROPOSED
        reason = f"grown: passed {comparison.id}"
        move = MoveAlias(
            version=candidate.version,
            expected=candidate.before if may_move else None,
            reason=reason,
        )
        await self._named.move(self._write, self._name, alias, move)
        candidate.outcome = "moved" if may_move else "proposed"
        self._step(candidate.outcome, f"{alias} points to version {candidate.version}: {figures}.")
        if may_move:
            self._wait_for_drift()
        else:
            self._wait_for_move(candidate)

    async def _watch(self, production: NamedVersion) -> None:
        """Send a decision back to the model before its family where an alarm of drift is raised."""
        candidate = self._state.candidate
        if self._state.stage != "moved":
            self._step(
                "moved", f"Production asks {self._family} with version {production.version}."
            )
        self._wait_for_drift()
        if candidate is None or candidate.before == production.version:
            return

        def read(connection: Connection) -> list[str]:
            alarms = active_alarms(connection, self._caller.account_id, self._family)
            return [
                str(alarm.message)
                for alarm in alarms
                if alarm.watch in _DRIFT and alarm.state == "raised"
            ]

        messages = await self._house.state.read(read)
        if not messages:
            return
        why = f"drift: {messages[0]}"
        back = MoveAlias(
            version=candidate.before,
            expected=production.version,
            reason=why[:500],
            overrule=why[:500],
        )
        await self._named.move(self._write, self._name, PRODUCTION, back)
        candidate.outcome = "refused"
        self._step("demoted", f"Production asks version {candidate.before} again; {why}")
        self._wait("demoted", f"{self._policy.at_least} new training rows.")

    # Words

    def _wait(self, stage: wire.GrowthStage, why: str) -> None:
        self._state.stage, self._state.waits_for = stage, " ".join([why, *self._doubts])

    def _wait_for_move(self, candidate: GrowthCandidate) -> None:
        self._wait(
            "proposed",
            f"A person: move {PRODUCTION} to version {candidate.version}, which passed.",
        )

    def _wait_for_drift(self) -> None:
        self._wait("moved", "New rows and alarms of drift, which send it back.")

    def _step(self, stage: wire.GrowthStage, message: str) -> None:
        step = wire.GrowthStep(at=self._now, stage=stage, message=message[:1_000])
        self._state.stage = stage
        self._state.steps = [step, *self._state.steps][:MOST_STEPS]
        self._state.n_steps += 1


def _append(warnings: list[str] | UnsetType) -> str:
    return "" if warnings is UNSET else "".join(f" {warning}" for warning in warnings)


def _new_rows(family: Family) -> int:
    growth = family.continue_
    return growth.rows.new if isinstance(growth, Continue) and growth.rows is not None else 0


def _unless_ended(stage: wire.GrowthStage) -> wire.GrowthStage:
    """Return a stage that says why it gathers rows, or that it does."""
    return stage if stage in {"refused", "demoted", "proposed"} else "gathering"


def _waits_for_rows(estimated: wire.LearningEstimate) -> str:
    if estimated.more_rows is None:
        why = "No number of rows would do by its learning curve"
    else:
        why = f"About {estimated.more_rows:,} more training rows"
    return (
        f"{why}: of {estimated.rows:,} a family would be wrong in {estimated.error:.1%}, and the model "
        f"before it is in {estimated.model_error.value:.1%} ({estimated.chance:.0%} chance to pass)."
    )


def _low(change: Change) -> float:
    return -1.0 if change.low is None else change.low


def _is_cheaper(comparison: NamedComparison) -> bool:
    price = comparison.result.price if comparison.result is not None else None
    return price is not None and Decimal(price.usd_after) < Decimal(price.usd_before)
