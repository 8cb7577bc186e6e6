"""The tools: each a call of the API, with the shapes of its arguments and of its answer.

Both are the API's own structs: an agent reads the fields of an answer before it asks, and a wrong
argument is refused in the words of the API.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, get_type_hints

import msgspec
from msgspec import UNSET, Meta, Struct

from steelyard.client import AsyncClient
from steelyard.client.answers import DecideAnswer, LintAnswer
from steelyard.client.dataset_calls import FoundRowsAnswer
from steelyard.decision_log.wire import FeedbackResponse
from steelyard.decisions.wire import DecisionInput, EstimateResponse
from steelyard.evaluations.gate_wire import Gate
from steelyard.evaluations.wire import Evaluation, EvaluationSubmission
from steelyard.models.wire import Model, ModelList
from steelyard.serving.recipes_wire import RecipeList
from steelyard.wire.limits import MAX_DECISIONS
from steelyard.wire.schemas import doc, portable

_MOST_ROWS = 50

ContextArgument = Annotated[
    Any, doc("What the decisions are about: a text, or any JSON object or array.")
]
_Decisions = Annotated[list[DecisionInput], Meta(min_length=1, max_length=MAX_DECISIONS)]
_ModelName = Annotated[str | None, doc("A model of list_models; the default if not.")]
_Dataset = Annotated[str, doc("A dataset's id.")]


class Tool(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One call of a tool: its fields are the arguments, and its docstring is the description for agents."""

    changes: ClassVar[bool] = False

    async def ask(self, client: AsyncClient) -> Struct:
        """Return the API's answer."""
        raise NotImplementedError

    @classmethod
    def arguments_schema(cls) -> dict[str, Any]:
        """Return the JSON Schema of its arguments."""
        return schema_of(cls)

    @classmethod
    def answer_schema(cls) -> dict[str, Any]:
        """Return the JSON Schema of its answer."""
        return schema_of(get_type_hints(cls.ask)["return"])


def schema_of(shape: type[Struct]) -> dict[str, Any]:
    """Return a struct's JSON Schema, with an object at its root as the protocol demands."""
    [root], components = msgspec.json.schema_components([shape], ref_template="#/$defs/{name}")
    components = portable(components)
    name = root["$ref"].rpartition("/")[2]
    return {**components[name], "$defs": components}


class Decide(Tool, frozen=True, kw_only=True):
    """Answer decisions about a context: a probability for every outcome, and an action."""

    changes: ClassVar[bool] = True
    context: ContextArgument
    decisions: _Decisions
    model: _ModelName = None

    async def ask(self, client: AsyncClient) -> DecideAnswer:
        """Return the API's answer."""
        return await client.decide(self.context, self.decisions, model=self.model)


class Estimate(Tool, frozen=True, kw_only=True):
    """Return the highest price of a decide; nothing runs."""

    context: ContextArgument
    decisions: _Decisions
    model: _ModelName = None

    async def ask(self, client: AsyncClient) -> EstimateResponse:
        """Return the API's answer."""
        return await client.estimate(self.context, self.decisions, model=self.model)


class Lint(Tool, frozen=True, kw_only=True):
    """Return wording that makes answers worse."""

    context: ContextArgument
    decisions: _Decisions

    async def ask(self, client: AsyncClient) -> LintAnswer:
        """Return the API's answer."""
        return await client.lint(self.context, self.decisions)


class ListModels(Tool, frozen=True, kw_only=True):
    """Return the models that may be asked: base, connected and tuned ones."""

    async def ask(self, client: AsyncClient) -> ModelList:
        """Return the API's answer."""
        return await client.models.list()


class ListRecipes(Tool, frozen=True, kw_only=True):
    """Return ready-made decisions for common needs."""

    async def ask(self, client: AsyncClient) -> RecipeList:
        """Return the API's answer."""
        return await client.recipes()


class ExplainedModel(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A model's card, and the gate that a tuned one was judged by."""

    model: Model
    gate: Gate | None = None


class ExplainAnswer(Tool, frozen=True, kw_only=True):
    """Return the facts behind a model's answers: its card, and the gate that it passed."""

    model: Annotated[str, doc("As an answer names it.")]

    async def ask(self, client: AsyncClient) -> ExplainedModel:
        """Return the API's answer."""
        model = await client.models.get(self.model)
        if model.job_id is UNSET:
            return ExplainedModel(model=model)
        job = await client.jobs.get(model.job_id)
        return ExplainedModel(model=model, gate=None if job.metrics is None else job.metrics.gate)


class SearchRowsTool(Tool, frozen=True, kw_only=True):
    """Return rows of a dataset that have words, with their labels."""

    dataset: _Dataset
    text: Annotated[str | None, doc("Words that contexts have.")] = None
    limit: Annotated[int, Meta(ge=1, le=_MOST_ROWS)] = 10

    async def ask(self, client: AsyncClient) -> FoundRowsAnswer:
        """Return the API's answer."""
        return await client.datasets.search(self.dataset, text=self.text, limit=self.limit)


class GetEvaluation(Tool, frozen=True, kw_only=True):
    """Return an evaluation: its status, and its figures once it has succeeded."""

    evaluation: Annotated[str, doc("An evaluation's id.")]

    async def ask(self, client: AsyncClient) -> Evaluation:
        """Return the API's answer."""
        return await client.evaluations.get(self.evaluation)


class RecordFeedback(Tool, frozen=True, kw_only=True):
    """Store the real outcome of a stored answer."""

    changes: ClassVar[bool] = True
    answer: Annotated[str, doc("Id of a stored answer, dec_….")]
    outcomes: Annotated[dict[str, str], doc("Decision id to the outcome that came true.")]

    async def ask(self, client: AsyncClient) -> FeedbackResponse:
        """Return the API's answer."""
        return await client.feedback(self.answer, self.outcomes)


class StartEvaluation(Tool, frozen=True, kw_only=True):
    """Score models on a dataset's evaluation rows; follow it with get_evaluation."""

    changes: ClassVar[bool] = True
    dataset: _Dataset
    models: Annotated[list[str], Meta(min_length=1, max_length=8)]

    async def ask(self, client: AsyncClient) -> EvaluationSubmission:
        """Return the API's answer."""
        return await client.evaluations.create(self.dataset, self.models)


TOOLS: dict[str, type[Tool]] = {
    "decide": Decide,
    "estimate": Estimate,
    "lint": Lint,
    "list_models": ListModels,
    "list_recipes": ListRecipes,
    "explain_answer": ExplainAnswer,
    "search_rows": SearchRowsTool,
    "get_evaluation": GetEvaluation,
    "record_feedback": RecordFeedback,
    "start_evaluation": StartEvaluation,
}
#: Tools that change nothing, and the others.
READING = tuple(name for name, tool in TOOLS.items() if not tool.changes)
WRITING = tuple(name for name, tool in TOOLS.items() if tool.changes)
#: The tools that the API lets a key of a scope call.
OF_SCOPE: dict[str, tuple[str, ...]] = {
    "full": (*READING, *WRITING),
    "read": ("lint", "list_models", "list_recipes", "explain_answer", "get_evaluation"),
    "inference": ("decide", "estimate", "lint", "list_models", "list_recipes", "explain_answer"),
}
