"""A server of the Model Context Protocol whose tools are calls of a Steelyard server.

It holds no key of its own over HTTP: each request's ``Authorization`` goes on to the API, whose
scopes, limits and prices then hold as for any other client.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.resources import files
from typing import Annotated, Any

import msgspec
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import Field

from steelyard.client import AsyncClient, ClientOptions
from steelyard.errors import KeyScopeError, SteelyardError
from steelyard.version import __version__

_INSTRUCTIONS = """\
Steelyard answers decisions about a text with a calibrated probability for every allowed outcome.
Call list_models or list_recipes first, lint a new wording, then decide. A decision is an object with
id, question, kind (single, binary or ordinal) and its outcomes, or a rubric for an ordinal.
"""
_MOST_ROWS = 50

_Context = Annotated[str, Field(description="The text that the decisions are about.")]
_Decisions = Annotated[
    list[dict[str, Any]],
    Field(min_length=1, max_length=64, description="Each with id, question, kind and outcomes."),
]
_Model = Annotated[str | None, Field(description="A model of list_models; the default if not.")]


class Tools:
    """The tools, each a call of the API; what changes something is apart from what reads."""

    def __init__(self, options: ClientOptions) -> None:
        self._options = options

    async def decide(
        self, ctx: Context, context: _Context, decisions: _Decisions, model: _Model = None
    ) -> dict[str, Any]:
        """Answer decisions about a text: a probability for every outcome, and an action."""
        return await self._call(ctx, lambda client: client.decide(context, decisions, model=model))

    async def estimate(
        self, ctx: Context, context: _Context, decisions: _Decisions, model: _Model = None
    ) -> dict[str, Any]:
        """Return what a decide would cost at most; nothing runs."""
        return await self._call(
            ctx, lambda client: client.estimate(context, decisions, model=model)
        )

    async def lint(self, ctx: Context, context: _Context, decisions: _Decisions) -> dict[str, Any]:
        """Return what about a wording makes its answers worse."""
        return await self._call(ctx, lambda client: client.lint(context, decisions))

    async def list_models(self, ctx: Context) -> dict[str, Any]:
        """Return the models that may be asked: base, connected and tuned ones."""
        return await self._call(ctx, lambda client: client.models.list())

    async def list_recipes(self, ctx: Context) -> dict[str, Any]:
        """Return ready-made decisions for common needs."""
        return await self._call(ctx, lambda client: client.recipes())

    async def explain_answer(
        self, ctx: Context, model: Annotated[str, Field(description="As an answer names it.")]
    ) -> dict[str, Any]:
        """Return what is known of a model's answers: its card, and the gate that it passed."""

        async def ask(client: AsyncClient) -> Any:
            found = await client.models.get(model)
            told: dict[str, Any] = {"model": found}
            if found.job_id is not msgspec.UNSET:
                job = await client.jobs.get(found.job_id)
                told["gate"] = None if job.metrics is None else job.metrics.gate
            return told

        return await self._call(ctx, ask)

    async def search_rows(
        self,
        ctx: Context,
        dataset: Annotated[str, Field(description="A dataset's id.")],
        text: Annotated[str | None, Field(description="Words that contexts have.")] = None,
        limit: Annotated[int, Field(ge=1, le=_MOST_ROWS)] = 10,
    ) -> dict[str, Any]:
        """Return rows of a dataset that have words, with their labels."""
        return await self._call(
            ctx, lambda client: client.datasets.search(dataset, text=text, limit=limit)
        )

    async def get_evaluation(
        self, ctx: Context, evaluation: Annotated[str, Field(description="An evaluation's id.")]
    ) -> dict[str, Any]:
        """Return an evaluation: its status, and its figures once it has succeeded."""
        return await self._call(ctx, lambda client: client.evaluations.get(evaluation))

    async def record_feedback(
        self,
        ctx: Context,
        answer: Annotated[str, Field(description="Id of a stored answer, dec_….")],
        outcomes: Annotated[
            dict[str, str], Field(description="Decision id to the outcome that came true.")
        ],
    ) -> dict[str, Any]:
        """Store what really happened after a stored answer."""
        return await self._call(ctx, lambda client: client.feedback(answer, outcomes))

    async def start_evaluation(
        self,
        ctx: Context,
        dataset: Annotated[str, Field(description="A dataset's id.")],
        models: Annotated[list[str], Field(min_length=1, max_length=8)],
    ) -> dict[str, Any]:
        """Score models on a dataset's evaluation rows; follow it with get_evaluation."""
        return await self._call(ctx, lambda client: client.evaluations.create(dataset, models))

    async def _call(self, ctx: Context, ask: Callable[[AsyncClient], Any]) -> dict[str, Any]:
        """Return an answer of the API as plain values; raise its refusal as the tool's."""
        async with self.client(ctx) as client:
            try:
                found = await ask(client)
            except SteelyardError as error:
                raise ToolError(told(error)) from error
        plain: dict[str, Any] = msgspec.to_builtins(found)
        return plain

    def client(self, ctx: Context) -> AsyncClient:
        """Return a client with the caller's key, or with that of the command on stdio."""
        headers = ctx.headers
        if headers is None:
            return AsyncClient(self._options)
        scheme, _, key = headers.get("authorization", "").partition(" ")
        is_key = scheme.lower() == "bearer" and key.strip()
        return AsyncClient(ClientOptions(self._options.url, key.strip() if is_key else None))


#: Tools that change nothing.
READING = (
    "estimate",
    "lint",
    "list_models",
    "list_recipes",
    "explain_answer",
    "search_rows",
    "get_evaluation",
)
WRITING = ("decide", "record_feedback", "start_evaluation")
#: The tools that the API lets a key of a scope call.
OF_SCOPE: dict[str, tuple[str, ...]] = {
    "full": (*READING, *WRITING),
    "read": ("lint", "list_models", "list_recipes", "explain_answer", "get_evaluation"),
    "inference": ("decide", "estimate", "lint", "list_models", "list_recipes", "explain_answer"),
}


def make_server(
    options: ClientOptions, *, names: Sequence[str] = OF_SCOPE["full"]
) -> MCPServer[Any]:
    """Return a server of the protocol, with some of the tools, before the API of a Steelyard server."""
    server: MCPServer[Any] = MCPServer(
        "steelyard",
        title="Steelyard",
        instructions=_INSTRUCTIONS,
        version=__version__,
        log_level="WARNING",
    )
    tools = Tools(options)
    for name in names:
        server.add_tool(
            getattr(tools, name),
            name=name,
            annotations=ToolAnnotations(
                read_only_hint=name in READING, destructive_hint=False, open_world_hint=False
            ),
        )

    @server.resource("steelyard://recipes/{recipe}", mime_type="application/json")
    async def recipe_of(recipe: str, ctx: Context) -> str:
        """Return a ready-made decision by its id."""
        async with tools.client(ctx) as client:
            found = [one for one in (await client.recipes()).data if one.id == recipe]
        if not found:
            raise ValueError(f"There is no recipe {recipe!r}; see the tool list_recipes.")
        return msgspec.json.encode(found[0]).decode()

    @server.resource("steelyard://datasets/{dataset}", mime_type="application/json")
    async def dataset_card(dataset: str, ctx: Context) -> str:
        """Return what a dataset asks, and how many rows of each kind it has."""
        async with tools.client(ctx) as client:
            return msgspec.json.encode(await client.datasets.get(dataset)).decode()

    @server.resource("steelyard://llms.txt", mime_type="text/plain")
    def llms() -> str:
        """Return the API in a page, for language models."""
        return files("steelyard.http").joinpath("llms.txt").read_text(encoding="utf-8")

    return server


async def scope_of(options: ClientOptions) -> str:
    """Return the scope of a key; without accounts every call may do all."""
    if not options.api_key:
        return "full"
    async with AsyncClient(options) as client:
        try:
            summary = await client.account.get()
        except KeyScopeError:
            return "inference"  # the one scope that may not read its account
        if not summary.accounts_enabled:
            return "full"
        async for key in client.account.keys(revoked=False):
            if options.api_key.startswith(key.prefix):
                return str(key.scope)
    return "full"


def told(error: SteelyardError) -> str:
    """Return a refusal as a text that an agent can act on: code, message, and each place."""
    places = [
        f"{'.'.join(map(str, one['path']))}: {one['message']}"
        for one in error.details or ()
        if "path" in one and "message" in one
    ]
    return "\n".join([f"{error.code}: {error.message}", *places[:20]])
