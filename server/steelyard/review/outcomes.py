"""The outcomes of a decision as a review names, describes and merges them, and its guideline. Pure.

The log of a draft has outcomes under the version's names, for ever: changing a name rewrites nothing
that was written. Answers are translated into the draft's names, and requests out of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import msgspec

from steelyard.datasets.definitions import Definition
from steelyard.datasets.rows import read_task
from steelyard.decisions.rendering import render_value
from steelyard.decisions.validation import read_decisions
from steelyard.review.outcomes_wire import OutcomeChange
from steelyard.wire.violations import BODY, Violations, show

Values = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class OutcomeNames:
    """A draft's names for the outcomes of one decision, and its guideline."""

    changes: Mapping[str, OutcomeChange]
    #: Outcomes, by the draft's names, that a sealed draft leaves out.
    dropped: frozenset[str] = field(default_factory=frozenset)
    #: In place of the version's: empty for none, ``None`` where that stays.
    guideline: str | None = None

    @property
    def has_changes(self) -> bool:
        """Whether rows that ask the decision have other outcomes."""
        return bool(self.changes or self.dropped)

    def guide(self, decision: Mapping[str, Any]) -> dict[str, Any]:
        """Return a decision with the draft's guideline."""
        made = dict(decision)
        if self.guideline is not None:
            made["guideline"] = self.guideline
        if self.guideline == "":
            del made["guideline"]
        return made

    def root_of(self, outcome: str) -> str:
        """Return the version's outcome that one is merged into, itself for none."""
        seen = {outcome}
        while (change := self.changes.get(outcome)) is not None and change.same_as is not None:
            outcome = change.same_as
            if outcome in seen:
                raise ValueError(f"{outcome!r} is merged into itself.")
            seen.add(outcome)
        return outcome

    def name_of(self, outcome: str) -> str:
        """Return the draft's name of an outcome of the version."""
        root = self.root_of(outcome)
        change = self.changes.get(root)
        return root if change is None or change.name is None else change.name

    def stored_name(self, name: str, outcomes: Sequence[str]) -> str | None:
        """Return which of some outcomes of the version has a name; ``None`` for no one."""
        matches = [outcome for outcome in outcomes if self.name_of(outcome) == name]
        roots = [outcome for outcome in matches if self.root_of(outcome) == outcome]
        return next(iter(roots or matches), None)

    def rename_values(self, values: Values) -> dict[str, float]:
        """Return labels under the draft's names; those of merged outcomes are added up."""
        renamed: dict[str, float] = {}
        for outcome, value in values.items():
            name = self.name_of(outcome)
            renamed[name] = renamed.get(name, 0.0) + value
        return {name: value for name, value in renamed.items() if name not in self.dropped}

    def store_values(self, values: Values, outcomes: Sequence[str]) -> dict[str, float]:
        """Return labels under the version's names, as the log has them."""
        return {self.stored_name(name, outcomes) or name: value for name, value in values.items()}

    def rename_decision(self, decision: Mapping[str, Any]) -> dict[str, Any]:
        """Return a decision that asks for the draft's outcomes."""
        outcomes, rubric = decision.get("outcomes"), decision.get("rubric")
        made = self.guide(decision)
        if isinstance(outcomes, Mapping):
            made["outcomes"] = self._describe(outcomes)
        elif isinstance(outcomes, list):
            entries = {render_value(entry): entry for entry in outcomes}
            texts = rubric if isinstance(rubric, list) else [None] * len(outcomes)
            described = self._describe(dict(zip(entries, texts, strict=True)))
            if isinstance(rubric, list):
                made["rubric"] = list(described.values())
            elif any(text is not None for text in described.values()):
                made["outcomes"] = described
                return self._rename_policy(made)
            made["outcomes"] = [entries.get(name, name) for name in described]
        return self._rename_policy(made)

    def unused(self, decisions: Sequence[Mapping[str, Any]], used: Set[str]) -> frozenset[str]:
        """Return the outcomes that no row has, by the draft's names; each wording keeps two."""
        if fixed_reason(decisions) is not None:
            return frozenset()
        worded = [
            list(dict.fromkeys(map(self.name_of, outcome_names(decision))))
            for decision in decisions
        ]
        unused = {name for names in worded for name in names if name not in used}
        for names in worded:
            missing = 2 - sum(name not in unused for name in names)
            unused -= set([name for name in names if name in unused][: max(0, missing)])
        return frozenset(unused)

    def descriptions(self, decisions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the draft's names with the first description in any wording."""
        values: dict[str, Any] = {}
        for decision in decisions:
            made = read_decisions({"decisions": [self.rename_decision(decision)]}, Violations())[0]
            if made is None:
                continue
            for name, text in zip(made.outcomes.names, made.outcomes.descriptions, strict=True):
                if values.get(name) is None:
                    values[name] = text
        return values

    def _describe(self, descriptions: Mapping[str, Any]) -> dict[str, Any]:
        """Return names to descriptions; of merged outcomes, the root's counts where there is one."""
        sources: dict[str, list[str]] = {}
        for outcome in descriptions:
            name = self.name_of(outcome)
            if name not in self.dropped:
                sources.setdefault(name, []).append(outcome)
        return {name: self._text_of(merged, descriptions) for name, merged in sources.items()}

    def _text_of(self, merged: Sequence[str], descriptions: Mapping[str, Any]) -> Any:
        roots = list(dict.fromkeys(self.root_of(outcome) for outcome in merged))
        changes = [self.changes[root] for root in roots if root in self.changes]
        given = [change.description for change in changes if change.description is not None]
        if given:
            return given[0] or None
        texts = (descriptions.get(outcome) for outcome in (*roots, *merged))
        return next((text for text in texts if text is not None), None)

    def _rename_policy(self, decision: dict[str, Any]) -> dict[str, Any]:
        for key in ("weights", "costs"):
            if isinstance(decision.get(key), Mapping):
                decision[key] = self._rename_costs(decision[key])
        policy = decision.get("policy")
        if isinstance(policy, Mapping) and isinstance(policy.get("action_costs"), Mapping):
            costs = self._rename_costs(policy["action_costs"])
            decision["policy"] = {**policy, "action_costs": costs}
        return decision

    def _rename_costs(self, costs: Mapping[str, Any]) -> dict[str, Any]:
        """Return numbers by outcome, or by action and outcome, under the draft's names."""
        if any(isinstance(value, Mapping) for value in costs.values()):
            return {
                action: self._rename_costs(value) if isinstance(value, Mapping) else value
                for action, value in costs.items()
            }
        made: dict[str, Any] = {}
        for outcome, value in costs.items():
            name = self.name_of(outcome)
            if name not in self.dropped and (self.root_of(outcome) == outcome or name not in made):
                made[name] = value
        return made


#: By decision id; a decision that is not among them keeps its outcomes.
Renamings = Mapping[str, OutcomeNames]


def rename_labels(
    labels: Mapping[str, Values], renamings: Renamings
) -> dict[str, dict[str, float]]:
    """Return the labels of a row under the draft's names."""
    return {
        decision: renamings[decision].rename_values(values)
        if decision in renamings
        else dict(values)
        for decision, values in labels.items()
    }


def rename_decisions(
    decisions: Sequence[Mapping[str, Any]], renamings: Renamings
) -> list[dict[str, Any]]:
    """Return the decisions of a row with the draft's outcomes."""
    return [
        renamings[decision["id"]].rename_decision(decision)
        if decision["id"] in renamings
        else dict(decision)
        for decision in decisions
    ]


def read_wording(definition: Definition) -> dict[str, Any]:
    """Return a wording of a decision as rows have it."""
    decision: dict[str, Any] = msgspec.json.decode(definition.decision)
    return decision


def fixed_reason(decisions: Sequence[Mapping[str, Any]]) -> str | None:
    """Return why the outcomes of a decision, in all its wordings, cannot be changed."""
    if any(decision.get("kind") == "binary" for decision in decisions):
        return "A yes/no decision has the outcomes yes and no; ask another decision."
    if any(not decision.get("outcomes") for decision in decisions):
        return "Its levels have positions for names; give them names in another decision."
    return None


def check_changes(
    changes: Mapping[str, OutcomeChange],
    decisions: Sequence[Mapping[str, Any]],
    *,
    has_rewards: bool,
    violations: Violations,
) -> dict[str, OutcomeChange]:
    """Return the effective changes; note the invalid ones.

    ``decisions`` are the wordings of the decision in the version, at least one.
    """
    path = (*BODY, "outcomes")
    reason = fixed_reason(decisions)
    if reason is not None:
        violations.add((*BODY, "decision"), f"cannot be changed. {reason}", "refused")
        return {}
    _check_fields(changes, decisions, violations)
    if violations:
        return {}
    names = OutcomeNames(changes)
    for outcome in changes:
        try:
            root = names.root_of(outcome)
        except ValueError:
            message = "is merged into this one in turn; keep one of them apart."
            violations.add((*path, outcome, "same_as"), message, "conflict")
            continue
        if has_rewards and root != outcome:
            message = "merges rewards, and two rewards make no one; keep the outcomes apart."
            violations.add((*path, outcome, "same_as"), message, "refused")
    if violations:
        return {}
    for decision in decisions:
        _check_decision(names, decision, violations, has_rewards=has_rewards)
    return _real_changes(changes, OutcomeNames({}).descriptions(decisions))


def check_guideline(
    guideline: str, decisions: Sequence[Mapping[str, Any]], violations: Violations
) -> None:
    """Note why a guideline could not stand beside the wordings of a decision."""
    wrong = Violations()
    read_task({"decisions": [OutcomeNames({}, guideline=guideline).guide(decisions[0])]}, wrong)
    for violation in wrong.listed[:1]:
        violations.add((*BODY, "guideline"), violation.message.partition(" ")[2], violation.type)


def _real_changes(
    changes: Mapping[str, OutcomeChange], described: Mapping[str, Any]
) -> dict[str, OutcomeChange]:
    """Return changes without names and descriptions that the version has already."""
    real: dict[str, OutcomeChange] = {}
    for outcome, change in changes.items():
        name = None if change.name == outcome else change.name
        is_known = (change.description or None) == described.get(outcome)
        description = None if is_known else change.description
        if (name, description, change.same_as) != (None, None, None):
            real[outcome] = OutcomeChange(
                name=name, description=description, same_as=change.same_as
            )
    return real


def outcome_names(decision: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of a stored decision's outcomes, in order."""
    _, outcomes = read_task({"decisions": [decision]}, Violations())
    return outcomes[decision["id"]] or ()


def _check_fields(
    changes: Mapping[str, OutcomeChange],
    decisions: Sequence[Mapping[str, Any]],
    violations: Violations,
) -> None:
    """Note outcomes that the decision does not have, and names that are blank."""
    path = (*BODY, "outcomes")
    known = {name for decision in decisions for name in outcome_names(decision)}
    for outcome, change in changes.items():
        if outcome not in known:
            violations.add((*path, outcome), "is not an outcome of the decision.", "unknown")
        elif change.same_as is not None and change.same_as not in known:
            message = f"is {show(change.same_as)}, which is not an outcome of the decision."
            violations.add((*path, outcome, "same_as"), message, "unknown")
        elif change.name is not None and not change.name.strip():
            violations.add((*path, outcome, "name"), "is blank; name the outcome.", "blank")


def _check_decision(
    names: OutcomeNames, decision: Mapping[str, Any], violations: Violations, *, has_rewards: bool
) -> None:
    """Note why a wording could not be asked with other outcomes."""
    path = (*BODY, "outcomes")
    before = outcome_names(decision)
    left = {names.name_of(outcome) for outcome in before}
    if len(left) < 2:
        violations.add(path, "leave one outcome; keep two apart.", "too_short")
        return
    if has_rewards and len(left) < len(before):
        violations.add(
            path, "merge rewards by giving two outcomes one name; name them apart.", "refused"
        )
        return
    wrong = Violations()
    read_task({"decisions": [names.rename_decision(decision)]}, wrong)
    for violation in wrong.listed[:1]:
        message = f"make a decision that cannot be asked: {violation.message}"
        violations.add(path, message, violation.type)
