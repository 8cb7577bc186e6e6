"""Calls of the routes of families and their models: one function a route."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import UNSET, UnsetType

from steelyard.client.calls import Call, remove, segment
from steelyard.client.routes import listed, route
from steelyard.errors import InvalidRequestError
from steelyard.families.fine_tune_wire import FineTuneEstimate, Job
from steelyard.families.wire import (
    Continue,
    DeletedFamily,
    DeletedModel,
    Family,
    FamilyList,
    Hyperparameters,
)
from steelyard.models.wire import Model
from steelyard.shadows.wire import EndedShadow, Shadow, ShadowReport

Training = Mapping[str, Any] | Hyperparameters


def _names(field: str, names: Sequence[str] | None) -> list[str] | None:
    """Return names as a list; a text alone would be taken letter by letter."""
    if isinstance(names, str):
        message = f'{field} is one text; give a list of names, such as ["{names}"].'
        raise InvalidRequestError.at(("body", field), message, "wrong_type")
    return listed(names)


_switch_off = partial(_names, "switch_off")


def _training(hyperparameters: Training | None) -> Training:
    return hyperparameters or {}


@route("POST /v1/families", Job, start_from="from", hyperparameters=_training)
def create(
    family: str,
    dataset_id: str,
    *,
    start_from: str | None = None,
    method: str | None = None,
    hyperparameters: Training | None = None,
    dataset_version: int | None = None,
    max_price_usd: str | None = None,
    idempotency_key: str | None = None,
) -> Call[Job]:
    """Start a family: queue its first fine-tune: ``POST /v1/families``.

    Parameters
    ----------
    family
        A new name: a small letter, then small letters, digits and hyphens.
    start_from
        A base model, or a family's model as ``NAME@NUMBER``; the default base when left out.
    method : {"sft", "reward"}, optional
        The kind of labels; ``sft``, targets, when left out.
    hyperparameters
        ``steps``, ``learning_rate``, ``lora_rank`` (1 to 16: train the encoder too), ``heads``
        (``auto``, ``words`` alone, the ``cheapest`` that is as right, a ``ladder`` of words where they
        are sure, or a reader's ``evidence`` too), ``seed``, ``judged_by``: the origins of held-out labels that the gate counts,
        and ``first``: ``words`` alone answer within seconds, and a further fine-tune, whose ``follows``
        is this one's id, trains the rest for the one fee and replaces them if the gate passes it.
    max_price_usd
        Refuse, and hold nothing, when the fine-tune is dearer.
    """


@route(
    "POST /v1/families/estimate",
    FineTuneEstimate,
    is_question=True,
    start_from="from",
    hyperparameters=_training,
)
def estimate(
    family: str,
    dataset_id: str,
    *,
    start_from: str | None = None,
    method: str | None = None,
    hyperparameters: Training | None = None,
    dataset_version: int | None = None,
) -> Call[FineTuneEstimate]:
    """Return the present price of ``create`` with these arguments: ``POST /v1/families/estimate``; holds nothing."""


@route("GET /v1/families", FamilyList)
def list_families() -> Call[FamilyList]:
    """Return every family, by name: ``GET /v1/families``."""


@route("GET /v1/families/{family}", Family)
def get(family: str) -> Call[Family]:
    """Return a family with its fine-tunes, and the effect of continuing it now: ``GET …/{family}``."""


@route("POST /v1/families/{family}/switch", Family, switch_off=_switch_off)
def switch(
    family: str,
    on: bool,
    *,
    switch_off: Sequence[str] | None = None,
    served: str | UnsetType | None = UNSET,
) -> Call[Family]:
    """Switch a family on or off: ``POST /v1/families/{family}/switch``.

    Switched on, its latest model is loaded and probed first, and takes a place among those that
    answer; the families and numbers of ``switch_off`` give theirs up in the same step. ``served``
    is the adapter id that you saw it serve, ``None`` for none: the call is refused when it serves
    another now.
    """


@route("POST /v1/families/{family}/keep-warm", Family, switch_off=_switch_off)
def keep_warm(
    family: str,
    enabled: bool = True,
    *,
    max_price_usd: str | None = None,
    switch_off: Sequence[str] | None = None,
    served: str | UnsetType | None = UNSET,
) -> Call[Family]:
    """Keep the model that a family serves loaded, or stop: ``POST …/{family}/keep-warm``.

    Enabling holds the price of the first hour, and is refused when the hour is dearer than
    ``max_price_usd``. Keep warm of the families and numbers of ``switch_off`` stops in the same
    step. ``served`` is as for ``switch``.
    """


@route("POST /v1/families/{family}/bound", Family)
def bound(
    family: str,
    error: float,
    *,
    confidence: float = 0.95,
    served: str | UnsetType | None = UNSET,
) -> Call[Family]:
    """Certify how often a family's answers above a threshold are wrong: ``POST …/{family}/bound``.

    Every answer of the family then has ``certified``, or abstains. ``error`` is the share of
    certified answers that may be wrong, such as 0.02; ``confidence``, how often a bound that is
    found on rows like the held-out ones holds. ``served`` is as for ``switch``. Raise
    ``BoundNotCertifiedError`` when the held-out rows certify none; the message says how many more
    would.
    """


@route("DELETE /v1/families/{family}/bound", Family)
def remove_bound(family: str) -> Call[Family]:
    """Remove a family's bound: ``DELETE /v1/families/{family}/bound``."""


@route("POST /v1/families/{family}/novelty", Family)
def abstain_on_novel(
    family: str,
    false_alarms: float = 0.05,
    *,
    served: str | UnsetType | None = UNSET,
) -> Call[Family]:
    """Make a family abstain on texts unlike its training rows: ``POST …/novelty``.

    Every answer of the family then has ``novelty``: the ``share`` of training rows that lie further
    out, and whether the context is ``unlike`` them, so that its decisions abstain. ``false_alarms``
    is how often it may do so on texts like the held-out ones; ``served`` is as for ``switch``.
    Raise ``NoveltyUnknownError`` when the model keeps no vectors of its training rows, or has too
    few held-out contexts.
    """


@route("DELETE /v1/families/{family}/novelty", Family)
def answer_novel(family: str) -> Call[Family]:
    """Make a family answer texts unlike its training rows: ``DELETE /v1/families/{family}/novelty``."""


@route("POST /v1/families/{family}/rollback", Family, discard=partial(_names, "discard"))
def roll_back(
    family: str,
    to: str,
    discard: Sequence[str],
    *,
    served: str | UnsetType | None = UNSET,
) -> Call[Family]:
    """Go back to an older model, such as ``router@2``: ``POST …/{family}/rollback``.

    ``discard`` has exactly the newer models that are not deleted or discarded; they are gone for
    good. ``served`` is as for ``switch``.
    """


@route("POST /v1/families/{family}/continue", Job, hyperparameters=_training)
def continue_(
    family: str,
    *,
    hyperparameters: Training | None = None,
    latest: str | UnsetType | None = UNSET,
    dataset_version: int | None = None,
    base: str | None = None,
    max_price_usd: str | None = None,
    idempotency_key: str | None = None,
) -> Call[Job]:
    """Queue a family's next fine-tune, on its dataset's new rows: ``POST …/{family}/continue``.

    ``latest`` is the adapter id of the latest model you saw, ``None`` for none: the call is refused
    when it is another now. ``base`` moves the family to a base model of this server, on which its
    next model is trained with every row. The other arguments are as for ``create``.
    """


@route(
    "POST /v1/families/{family}/continue/estimate",
    FineTuneEstimate,
    is_question=True,
    hyperparameters=_training,
)
def estimate_continue(
    family: str,
    *,
    hyperparameters: Training | None = None,
    latest: str | UnsetType | None = UNSET,
    dataset_version: int | None = None,
    base: str | None = None,
) -> Call[FineTuneEstimate]:
    """Return the present price of ``continue_`` with these arguments: ``POST …/{family}/continue/estimate``."""


@route("GET /v1/families/{family}/continue", Continue, draft_id="draft")
def check_continue(family: str, *, draft_id: str | None = None) -> Call[Continue]:
    """Return whether ``continue_`` could start, and why not: ``GET …/{family}/continue``.

    ``draft_id``: as if this draft of the dataset's newest version were sealed as the next.
    """


def delete(
    family: str,
    *,
    dataset_id: str | None = None,
    latest: str | UnsetType | None = UNSET,
) -> Call[DeletedFamily]:
    """Delete a family with every model of its line, for good: ``DELETE /v1/families/{family}``.

    Its name is given again only if no model ever joined. The call is refused when it grows on
    another dataset than ``dataset_id``, or when its latest model is another than ``latest``, as for
    ``continue_``.
    """
    fields, guards = {"dataset_id": dataset_id}, {"latest": latest}
    return remove(f"/v1/families/{segment(family)}", DeletedFamily, fields, guards=guards)


@route("POST /v1/families/{family}/shadow", Shadow)
def shadow(family: str, model: str, share: float = 0.1) -> Call[Shadow]:
    """Score a share of a family's stored answers with another model: ``POST …/{family}/shadow``.

    ``model`` is a base or connected model, or a number such as ``router@3``; ``share`` is above 0
    and up to 1.
    """


@route("DELETE /v1/families/{family}/shadow", EndedShadow)
def end_shadow(family: str) -> Call[EndedShadow]:
    """End a family's shadow; its answers stay: ``DELETE …/{family}/shadow``."""


@route("GET /v1/families/{family}/shadow", ShadowReport)
def compare_shadow(
    family: str, *, since: float | None = None, until: float | None = None
) -> Call[ShadowReport]:
    """Compare a family with its shadow on stored answers: ``GET …/{family}/shadow``.

    ``since`` and ``until`` are Unix seconds; the last 30 days when left out.
    """


@route("POST /v1/models/{model}/switch", Model, switch_off=_switch_off)
def switch_model(
    model: str,
    on: bool,
    *,
    switch_off: Sequence[str] | None = None,
    adapter: str | None = None,
) -> Call[Model]:
    """Switch one model, such as ``router@3``, on or off: ``POST /v1/models/{model}/switch``.

    As for ``switch``. ``adapter`` is the adapter id that you saw behind the number: the call is
    refused when it is another now.
    """


@route("POST /v1/models/{model}/keep-warm", Model, switch_off=_switch_off)
def keep_model_warm(
    model: str,
    enabled: bool = True,
    *,
    max_price_usd: str | None = None,
    switch_off: Sequence[str] | None = None,
    adapter: str | None = None,
) -> Call[Model]:
    """Keep a model loaded through its own switch: ``POST /v1/models/{model}/keep-warm``.

    As for ``keep_warm``, with ``adapter`` as for ``switch_model``.
    """


@route("DELETE /v1/models/{model}", DeletedModel)
def delete_model(model: str, *, adapter: str | None = None) -> Call[DeletedModel]:
    """Delete a family's model for good: ``DELETE /v1/models/{model}``.

    A family's latest model is rolled back instead. ``adapter`` is as for ``switch_model``.
    """
