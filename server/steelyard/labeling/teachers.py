"""Teachers: connected models that an operator marked, and the account's families."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import UNSET, Struct

from steelyard import errors
from steelyard.caller import Caller
from steelyard.evaluations.judges import Judges
from steelyard.evaluations.models import EvaluatedModels
from steelyard.families.lineage_store import LineageStore
from steelyard.labeling.wire import MAX_ROWS, MAX_TEACHERS, Teacher, TeacherList
from steelyard.serving.registry import ModelRegistry
from steelyard.wire.violations import BODY, Violations, show

_NOBODY = (
    "No connected model is marked as a teacher (steelyard model add --teacher), and the account has "
    "no family that serves a model."
)


class JobTeacher(Struct, frozen=True, kw_only=True):
    """A teacher as a job keeps it: the identity of its model."""

    name: str
    model_id: str
    evaluation_key: str
    price_nano: int
    #: Most tokens that it writes on a decision before it answers.
    thought_tokens: int = 0


class Teachers:
    """Finds the teachers of accounts."""

    def __init__(
        self,
        registry: ModelRegistry,
        lineages: LineageStore,
        models: EvaluatedModels,
        judges: Judges,
    ) -> None:
        self._registry, self._lineages, self._models = registry, lineages, models
        self._judges = judges

    async def available(self, caller: Caller, decisions: Sequence[Any] = ()) -> TeacherList:
        """Return the teachers of an account, with why one is to be doubted on some decisions."""
        marked = [hosted.name for hosted in self._registry.hosted if hosted.is_teacher]
        lineage = (await self._lineages.read(caller.account_id)).lineage
        families = [
            name
            for name, family in lineage.families.items()
            if family.served is not None and family.switch.is_on
        ]
        names = [*marked, *sorted(families)]
        doubts = await self._judges.doubts(decisions) if marked else {}
        return TeacherList(
            available=bool(names),
            reason=UNSET if names else _NOBODY,
            data=[Teacher(id=name, name=name, doubt=doubts.get(name, UNSET)) for name in names],
            defaults={"default": (marked or names)[:MAX_TEACHERS]},
            limits={"labeling_rows": MAX_ROWS, "teachers": MAX_TEACHERS},
        )

    async def choose(
        self, caller: Caller, names: Sequence[str] | None, decisions: Sequence[Any] = ()
    ) -> tuple[list[JobTeacher], list[str]]:
        """Return the teachers of a job, those of a request or the defaults, and the reasons against them."""
        known = await self.available(caller, decisions)
        if not known.available:
            raise errors.LabelingUnavailableError(_NOBODY)
        chosen = known.defaults["default"] if names is None else list(names)
        violations = Violations()
        allowed = [item.id for item in known.data]
        for index, name in enumerate(chosen):
            path = (*BODY, "teacher_models", index)
            if name not in allowed:
                listed = ", ".join(allowed)
                violations.add(path, f"is {show(name)}; the teachers are {listed}.", "not_allowed")
            elif name in chosen[:index]:
                violations.add(path, f"repeats {show(name)}; name each once.", "duplicate")
        violations.raise_if_any()
        paths = {name: (*BODY, "teacher_models", index) for index, name in enumerate(chosen)}
        warnings = await self._judges.check(caller, paths, decisions)
        models = [await self._models.find(caller, name) for name in chosen]
        prices = await self._models.prices_of(caller.account_id, [model.id for model in models])
        teachers = [
            JobTeacher(
                name=name,
                model_id=model.id,
                evaluation_key=model.evaluation_key,
                price_nano=prices[model.id],
                thought_tokens=model.thought_tokens,
            )
            for name, model in zip(chosen, models, strict=True)
        ]
        return teachers, warnings
