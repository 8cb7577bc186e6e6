"""A switch of models: the version that another model answers, and the texts whose labels would settle it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from steelyard.errors import NoRowsError, NotFoundError
from steelyard.named.comparison_wire import NamedComparison
from steelyard.named.wire import NamedVersion
from steelyard.review.wire import Draft, DraftSummary

if TYPE_CHECKING:
    from steelyard.client import Client

#: Where a row's metadata has the stored decision that it is of.
_STORED_ID = "decision_id"
#: A share of an outcome from which a row of a sealed review is labelled.
_LABELLED = 0.99


@dataclass(frozen=True, slots=True)
class Settling:
    """The review of the texts that would settle a comparison."""

    draft: Draft | DraftSummary
    #: Labels that are feedback on stored decisions now: those of the sealed review.
    n_labels: int = 0

    @property
    def summary(self) -> str:
        """How far it is, and what to do next."""
        if self.draft.sealed is None:
            return (
                f"{self.draft.rows:,} texts wait in the review {self.draft.name}. Label and seal them; the "
                "same step then takes the labels as feedback."
            )
        return f"{self.n_labels:,} labels of the review are feedback now. Compare again."


def version_with_model(client: Client, name: str, at: int | str, model: str) -> NamedVersion:
    """Return the version that asks what another one does, of another model; it is made where it is not there."""
    version = client.named_decisions.version(name, at)
    content = version.content | {"model": model}
    note = f"version {version.version}, answered by {model}"
    return client.named_decisions.add_version(name, **content, note=note)


def settle(client: Client, comparison: NamedComparison) -> Settling:
    """Return the review of the texts that would settle a comparison; it is made where it is not there.

    Once it is sealed, its labels are reported as feedback on the stored decisions, which the next
    comparison judges by.

    Raises
    ------
    NoRowsError
        Where the versions differ on no stored decision.
    """
    versions = f"{comparison.decision} {comparison.version} against {comparison.against}"
    name = f"{versions}, {datetime.fromtimestamp(comparison.created_at, UTC):%Y-%m-%d %H:%M:%S}"
    names = {name, f"{versions}, {comparison.id}"}  # the latter by a client of 0.4
    draft = next((each for each in client.drafts.list().data if each.name in names), None)
    if draft is None:
        rows = _rows_to_label(client, comparison)
        key = f"settle-{comparison.id}"
        dataset = client.datasets.create(name, evaluation=rows, idempotency_key=key)
        return Settling(client.drafts.create(dataset.id, name=name, idempotency_key=key))
    sealed = draft.sealed
    if sealed is None:
        return Settling(draft)
    page = client.datasets.rows(sealed.dataset_id, version=sealed.version)
    n_labels = 0
    for row in page.data:
        labels = {} if row.targets is UNSET else _labels_of(row.targets)
        stored_id = (row.metadata or {}).get(_STORED_ID)
        if labels and isinstance(stored_id, str):
            with suppress(NotFoundError):  # it is older than what is kept
                client.feedback(stored_id, labels, by="person")
                n_labels += len(labels)
    return Settling(draft, n_labels)


def _rows_to_label(client: Client, comparison: NamedComparison) -> list[dict[str, Any]]:
    """Return the stored decisions on which the versions differ as rows whose outcomes are all as likely."""
    names_by_id: dict[str, list[str]] = {}
    for switch in () if comparison.result is None else comparison.result.switches:
        for stored_id in switch.to_label:
            names_by_id.setdefault(stored_id, []).append(switch.decision)
    rows = []
    for stored_id, names in names_by_id.items():
        with suppress(NotFoundError):
            stored = client.stored_decision(stored_id)
            questions = [each for each in stored.request["decisions"] if each["id"] in names]
            targets = {
                each["id"]: _evenly(list(stored.results[each["id"]].probabilities))
                for each in questions
            }
            rows.append(
                {
                    "context": stored.request["context"],
                    "decisions": questions,
                    "targets": targets,
                    "metadata": {_STORED_ID: stored_id},
                }
            )
    if not rows:
        raise NoRowsError(
            "The versions differ on no stored decision, so that no label would settle it; compare "
            "them on more of them."
        )
    return rows


def _evenly(outcomes: Sequence[str]) -> dict[str, float]:
    return dict.fromkeys(outcomes, 1 / len(outcomes))


def _labels_of(targets: Mapping[str, Mapping[str, float]]) -> dict[str, str]:
    """Return the outcome of each decision that was labelled."""
    tops = {name: max(shares, key=shares.__getitem__) for name, shares in targets.items()}
    return {name: top for name, top in tops.items() if targets[name][top] >= _LABELLED}
