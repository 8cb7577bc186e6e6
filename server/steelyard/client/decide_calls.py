"""Calls of deciding: one function a route.

The clients' methods are made of these, so the signatures and the help here are theirs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict, Unpack

from steelyard.accounts.wire import AccountSummary, ApiKeyPage
from steelyard.billing.wire import Billing, PurchasePage, TransactionPage
from steelyard.client.answers import DecideAnswer, LintAnswer
from steelyard.client.calls import Call, read
from steelyard.client.routes import route
from steelyard.decision_log.wire import (
    DecisionLogPage,
    DecisionSeries,
    DecisionSummary,
    FeedbackResponse,
    StoredAnswer,
)
from steelyard.decisions.wire import DecisionInput, EstimateResponse, ImageInput
from steelyard.dialects.openai.wire import DecisionsResponse
from steelyard.dialects.systemone.wire import QuestionInput, SystemOneResponse, TranslateResponse
from steelyard.discovery.wire import Discovery
from steelyard.models.wire import Model, ModelList, ModelReadiness
from steelyard.serving.health_wire import Health, Readiness
from steelyard.serving.recipes_wire import RecipeList
from steelyard.wire.origins import Origin
from steelyard.wire.queries import ExportFormat

Context = str | Mapping[str, Any] | Sequence[Any]
Decisions = Sequence[Mapping[str, Any] | DecisionInput]
Questions = Mapping[str, Mapping[str, Any] | QuestionInput]

#: The model that TypeSafe's clients name when none is given.
JEV_LATEST = "jev-latest"


@route("POST /v1/decide", DecideAnswer, is_scored=True)
def decide(
    context: Context,
    decisions: Decisions,
    *,
    model: str | None = None,
    fallback: str | Sequence[str] | None = None,
    escalate: bool | None = None,
    temperature: float | None = None,
    images: Sequence[Mapping[str, Any] | ImageInput] | None = None,
    independent: bool | None = None,
    store: bool | Literal["features"] | None = None,
    metadata: Mapping[str, str | float | bool | None] | None = None,
    explain: bool | None = None,
    idempotency_key: str | None = None,
) -> Call[DecideAnswer]:
    """Answer decisions about one context: ``POST /v1/decide``.

    Parameters
    ----------
    context
        The text to decide on, or any JSON object or array.
    decisions
        1 to 64, each with ``id``, ``question``, and by kind ``kind``, ``outcomes``, ``rubric`` and
        the fields of the action.
    model, fallback
        A model's name, the server's default when left out; and ``auto`` (the default), ``none``, or
        the models to try in order.
    escalate
        With a list of fallbacks: they decide where the model abstains, and texts unlike its
        training rows. Both models are paid then.
    temperature
        0.2 to 5; below 1 sharpens the probabilities, above 1 softens them.
    images
        For models that read images.
    independent
        Accepted, and changes nothing: decisions never affect each other.
    store
        Whether the answer is stored for feedback; as the server is set when left out.
        ``"features"`` stores a hash, the length and the language of the context in its place.
    metadata
        Up to 16 values kept with a stored answer; the model never reads them.
    explain
        Answer again without each sentence of the context (at most 8 parts), and say by how much the
        top outcome's probability falls. Their tokens are paid too.
    """


@route("POST /v1/decide/estimate", EstimateResponse, is_question=True)
def estimate(
    context: Context,
    decisions: Decisions,
    *,
    model: str | None = None,
    fallback: str | Sequence[str] | None = None,
    escalate: bool | None = None,
    temperature: float | None = None,
    explain: bool | None = None,
) -> Call[EstimateResponse]:
    """Return the highest price of ``decide``: ``POST /v1/decide/estimate``; nothing runs."""


@route(
    "POST /v1/playground/decide", DecideAnswer, is_question=True, is_scored=True, may_compress=False
)
def playground(
    context: Context,
    decisions: Decisions,
    *,
    model: str | None = None,
    temperature: float | None = None,
    explain: bool | None = None,
) -> Call[DecideAnswer]:
    """Answer at most 8 decisions, free and never stored: ``POST /v1/playground/decide``.

    Only base models answer here.
    """


@route("POST /v1/lint", LintAnswer, is_question=True, may_compress=False)
def lint(context: Context, decisions: Decisions) -> Call[LintAnswer]:
    """Return wording that makes answers worse: ``POST /v1/lint``; no model runs."""


@route("POST /v1/feedback", FeedbackResponse)
def feedback(
    decision_id: str,
    outcomes: Mapping[str, str | Mapping[str, float]],
    *,
    by: Origin | None = None,
    who: str | None = None,
    idempotency_key: str | None = None,
) -> Call[FeedbackResponse]:
    """Report the outcome that really happened: ``POST /v1/feedback``.

    ``outcomes`` maps decisions of the stored answer to the outcome that came true, or to
    probabilities by outcome, and replaces earlier feedback. Labels ``by`` clicks and models count
    only where a query names them, and never replace others. ``who`` labelled is the calling key or
    user when left out.
    """


@route("POST /v1/decisions", DecisionsResponse, is_scored=True)
def decisions(
    model: str,
    input: str | Sequence[Mapping[str, Any]],  # noqa: A002
    questions: Sequence[Mapping[str, Any]],
    *,
    idempotency_key: str | None = None,
) -> Call[DecisionsResponse]:
    """Answer questions in the shape of OpenAI's clients: ``POST /v1/decisions``.

    ``input`` is a text, or messages with one. Each question has ``type`` (``predicate``, ``choice``
    or ``score``), ``instructions`` and the fields of its type.
    """


@route("POST /v1/systemone", SystemOneResponse, is_scored=True)
def systemone(
    state: Context,
    questions: Questions,
    *,
    model: str = JEV_LATEST,
    idempotency_key: str | None = None,
) -> Call[SystemOneResponse]:
    """Answer questions in TypeSafe's shape: ``POST /v1/systemone``.

    ``state`` is the text or the JSON that the questions are about. Each question has ``type``
    (``noul``, ``choice`` or ``score``), ``instructions`` and ``criteria``. A model's name that
    starts with ``jev`` means the default base model.
    """


@route("POST /v1/systemone/estimate", EstimateResponse, is_question=True)
def systemone_estimate(
    state: Context, questions: Questions, *, model: str = JEV_LATEST
) -> Call[EstimateResponse]:
    """Return the highest price of ``systemone``: ``POST /v1/systemone/estimate``; nothing runs."""


@route("POST /v1/systemone/translate", TranslateResponse, is_question=True, may_compress=False)
def translate(
    state: Context, questions: Questions, *, model: str = JEV_LATEST
) -> Call[TranslateResponse]:
    """Return the decide request that asks the same: ``POST /v1/systemone/translate``."""


@route("GET /v1/models", ModelList)
def list_models() -> Call[ModelList]:
    """Return every model: ``GET /v1/models``."""


@route("GET /v1/models/{model}", Model)
def get_model(model: str) -> Call[Model]:
    """Return one model: ``GET /v1/models/{model}``."""


@route("GET /v1/models/{model}/ready", ModelReadiness)
def get_model_ready(model: str) -> Call[ModelReadiness]:
    """Return whether a model answers now: ``GET /v1/models/{model}/ready``; nothing is loaded."""


@route("GET /v1/onehot", Discovery)
def capabilities() -> Call[Discovery]:
    """Return the server's features, bounds and prices: ``GET /v1/onehot``."""


@route("GET /v1/recipes", RecipeList)
def recipes() -> Call[RecipeList]:
    """Return ready-made decisions for common needs: ``GET /v1/recipes``."""


@route("GET /v1/account", AccountSummary)
def get_account() -> Call[AccountSummary]:
    """Return the account of the key: its balance and its bounds: ``GET /v1/account``."""


@route("GET /v1/billing", Billing)
def get_billing() -> Call[Billing]:
    """Return the money of the key's account: ``GET /v1/billing``."""


@route("GET /v1/billing/purchases", PurchasePage)
def list_purchases(*, page_size: int = 200, cursor: str | None = None) -> Call[PurchasePage]:
    """List the account's purchases, newest first: ``GET /v1/billing/purchases``."""


@route("GET /v1/billing/transactions", TransactionPage)
def list_transactions(*, page_size: int = 200, cursor: str | None = None) -> Call[TransactionPage]:
    """List the account's ledger, newest first: ``GET /v1/billing/transactions``."""


@route("GET /v1/account/keys", ApiKeyPage)
def list_account_keys(
    *, revoked: bool | None = None, page_size: int = 200, cursor: str | None = None
) -> Call[ApiKeyPage]:
    """List the account's keys, newest first: ``GET /v1/account/keys``.

    ``revoked``: only the revoked, or only the others.
    """


@route("GET /v1/health", Health)
def health() -> Call[Health]:
    """Return that the server runs, and its model and engine: ``GET /v1/health``."""


@route("GET /v1/ready", Readiness)
def ready() -> Call[Readiness]:
    """Return whether every engine scores and the state can be written: ``GET /v1/ready``.

    For operators of the server: it needs a key of scope ``full``, or a call from the same machine.
    """


@route("GET /v1/decisions/log", DecisionLogPage)
def decision_log(
    *,
    since: float | None = None,
    until: float | None = None,
    model: str | None = None,
    key: str | None = None,
    named: str | None = None,
    decision: str | None = None,
    has_feedback: bool | None = None,
    abstained: bool | None = None,
    wrong: bool | None = None,
    by: Origin | None = None,
    p_from: float | None = None,
    p_to: float | None = None,
    order: Literal["newest", "chance", "strata"] | None = None,
    outcome: str | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[DecisionLogPage]:
    """Return a page of stored answers, newest first: ``GET /v1/decisions/log``.

    Filters on feedback, abstaining and probabilities apply to the same decision of an answer.

    Parameters
    ----------
    since, until
        Answered at or after the one and before the other, in Unix seconds.
    model, key
        Answered under this name or by the model of this number; asked for with the API key of this
        id.
    named
        Of this named decision, or of this version of it, ``support_triage@7``.
    decision
        Only answers that have a decision of this id.
    has_feedback, abstained, wrong
        Whether it has feedback, whether the decision abstained, and whether its top outcome did not
        come true.
    by
        Only feedback of this origin; all but that of clicks and models when left out.
    p_from, p_to
        0 to 1: only those whose top probability is above the one and not above the other.
    order
        ``chance``: a random order that stays, and one page of it. Feedback on its first answers,
        without a gap, makes the ``true_share`` of ``decision_series``. ``strata``: the same in turn
        of strata of the probability of ``outcome`` of ``decision``, for outcomes that are rare.
    cursor
        The page before's ``next_cursor``. A page may be short, or empty, and still have one.
    """


class DecisionFilters(TypedDict, total=False):
    """Filters of stored decisions; all of them without any. ``decision_log`` explains each."""

    since: float | None
    until: float | None
    model: str | None
    key: str | None
    named: str | None
    decision: str | None
    has_feedback: bool | None
    abstained: bool | None
    wrong: bool | None
    by: Origin | None
    p_from: float | None
    p_to: float | None


def export_decisions(
    format: ExportFormat = "parquet",  # noqa: A002
    **filters: Unpack[DecisionFilters],
) -> Call[bytes]:
    """Return stored decisions as a file, a row each: ``GET /v1/decisions/log/export``.

    The format ``hf`` is a zip of a folder that Hugging Face ``datasets`` loads. ``filters`` are
    those of ``decision_log``, without pages.
    """
    return read("/v1/decisions/log/export", bytes, format=format, **filters)


@route("GET /v1/decisions/summary", DecisionSummary)
def decision_summary(
    *,
    since: float | None = None,
    until: float | None = None,
    bucket_s: int | None = None,
    model: str | None = None,
    named: str | None = None,
    decision: str | None = None,
    by: Origin | None = None,
) -> Call[DecisionSummary]:
    """Sum up the stored answers of a window: ``GET /v1/decisions/summary``.

    The window is in Unix seconds, the last hour when left out, in at most 1,440 buckets of
    ``bucket_s`` seconds, 60 when left out. The other filters are those of ``decision_log``.
    """


@route("GET /v1/decisions/series", DecisionSeries)
def decision_series(
    *,
    since: float | None = None,
    until: float | None = None,
    bucket_s: int | None = None,
    model: str | None = None,
    named: str | None = None,
    decision: str | None = None,
    by: Origin | None = None,
) -> Call[DecisionSeries]:
    """Return figures of the stored answers over time: ``GET /v1/decisions/series``.

    As ``decision_summary``, with the last day and an hour when left out, and at most 240 points.
    """


@route("GET /v1/decisions/log/{decision_id}", StoredAnswer)
def stored_decision(decision_id: str) -> Call[StoredAnswer]:
    """Return a stored answer, ``dec_…``, in full: ``GET /v1/decisions/log/{id}``."""
