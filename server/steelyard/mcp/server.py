"""A server of the Model Context Protocol whose tools are calls of a Steelyard server.

It holds no key of its own over HTTP: each request's ``Authorization`` goes on to the API, whose
scopes, limits and prices then hold as for any other client.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from importlib.resources import files
from typing import Any

import mcp_types as types
import msgspec
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from msgspec import Struct

from steelyard.client import AsyncClient, ClientOptions
from steelyard.client.dataset_calls import list_datasets
from steelyard.errors import KeyScopeError, NotFoundError, SteelyardError, UnauthenticatedError
from steelyard.mcp.named_tools import PREFIX, NamedArguments, ask_named, named_tools
from steelyard.mcp.tools import OF_SCOPE, TOOLS, Tool
from steelyard.version import __version__
from steelyard.wire.payloads import read_payload

#: The tool without which named decisions are none either.
_DECIDE = "decide"
#: Datasets that are listed as resources, those used last.
_MOST_DATASETS = 50
_INSTRUCTIONS = """\
Steelyard answers decisions about a text with a calibrated probability for every allowed outcome.
Call list_models or list_recipes first, lint a new wording, then decide. A decision is an object with
id, question, kind (single, binary or ordinal) and its outcomes, or a rubric for an ordinal.
"""


class _Server(MCPServer[Any]):
    """Offers some of the tools, each with the schema of its arguments and of its answer."""

    def __init__(self, options: ClientOptions, names: Sequence[str]) -> None:
        super().__init__(
            "steelyard",
            title="Steelyard",
            instructions=_INSTRUCTIONS,
            version=__version__,
            log_level="WARNING",
        )
        self._options = options
        self._names = tuple(names)

    async def list_tools(self) -> list[types.Tool]:
        """Return the tools that some caller is offered."""
        return [_described(name, TOOLS[name]) for name in self._names]

    async def _handle_list_tools(
        self,
        ctx: Any,
        params: types.PaginatedRequestParams | None,  # noqa: ARG002
    ) -> types.ListToolsResult:
        # ``list_tools`` does not know who calls, and what a key may is its own.
        async with self._caller(ctx) as (client, allowed):
            tools = [tool for tool in await self.list_tools() if tool.name in allowed]
            if _DECIDE in allowed and _DECIDE in self._names:
                tools += await named_tools(client)
            return types.ListToolsResult(tools=tools)

    async def _handle_list_resources(
        self,
        ctx: Any,
        params: types.PaginatedRequestParams | None,  # noqa: ARG002
    ) -> types.ListResourcesResult:
        async with self._caller(ctx) as (client, allowed):
            resources = await self.list_resources() if allowed else []
            if "list_recipes" in allowed:
                recipes = (await client.recipes()).data
                resources += [_resource("recipes", each.id, each.title) for each in recipes]
            if "get_evaluation" in allowed:  # of the scopes that read datasets
                page = await client.answer_to(list_datasets(limit=_MOST_DATASETS))
                resources += [_resource("datasets", each.id, each.name) for each in page.data]
            return types.ListResourcesResult(resources=resources)

    async def _handle_list_resource_templates(
        self,
        ctx: Any,
        params: types.PaginatedRequestParams | None,  # noqa: ARG002
    ) -> types.ListResourceTemplatesResult:
        async with self._caller(ctx) as (_, allowed):
            templates = await self.list_resource_templates() if allowed else []
            return types.ListResourceTemplatesResult(resource_templates=templates)

    @asynccontextmanager
    async def _caller(self, ctx: Any) -> AsyncIterator[tuple[AsyncClient, Sequence[str]]]:
        """Open a client with the caller's key, and give the tools of its scope: none without a key."""
        options = self._options_of(Context[Any](request_context=ctx, mcp_server=self))
        allowed: Sequence[str] = ()
        try:
            with suppress(UnauthenticatedError):
                allowed = OF_SCOPE[await scope_of(options)]
            async with AsyncClient(options) as client:
                yield client, allowed
        except SteelyardError as error:
            raise MCPError(types.INTERNAL_ERROR, refusal(error)) from error

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any] | None = None
    ) -> types.CallToolResult:
        """Return the API's answer, or its refusal: code, message and each place."""
        try:
            is_named = name.startswith(PREFIX) and _DECIDE in self._names
            if name not in self._names and not is_named:
                raise NotFoundError(f"There is no tool {name!r}; see tools/list.")
            async with self.client(context) as client:
                if is_named:
                    given = read_payload(arguments, NamedArguments)
                    answer: Struct = await ask_named(client, name, given)
                else:
                    answer = await read_payload(arguments, TOOLS[name]).ask(client)
        except SteelyardError as error:
            content = types.TextContent(type="text", text=refusal(error))
            return types.CallToolResult(content=[content], is_error=True)
        plain: dict[str, Any] = msgspec.to_builtins(answer)
        content = types.TextContent(type="text", text=msgspec.json.encode(plain).decode())
        return types.CallToolResult(content=[content], structured_content=plain)

    def client(self, context: Context[Any] | None) -> AsyncClient:
        """Return a client with the caller's key, or with that of the command on stdio."""
        return AsyncClient(self._options_of(context))

    def _options_of(self, context: Context[Any] | None) -> ClientOptions:
        headers = None if context is None else context.headers
        if headers is None:
            return self._options
        scheme, _, key = headers.get("authorization", "").partition(" ")
        is_key = scheme.lower() == "bearer" and key.strip()
        return ClientOptions(self._options.url, key.strip() if is_key else None)


def _described(name: str, tool: type[Tool]) -> types.Tool:
    """Return a tool's description for agents."""
    return types.Tool(
        name=name,
        description=tool.__doc__,
        input_schema=tool.arguments_schema(),
        output_schema=tool.answer_schema(),
        annotations=types.ToolAnnotations(
            read_only_hint=not tool.changes, destructive_hint=False, open_world_hint=False
        ),
    )


def _resource(kind: str, id_: str, title: str) -> types.Resource:
    """Return a recipe or a dataset as agents see it in the list."""
    return types.Resource(
        uri=f"steelyard://{kind}/{id_}", name=id_, title=title, mime_type="application/json"
    )


def make_server(
    options: ClientOptions, *, names: Sequence[str] = OF_SCOPE["full"]
) -> MCPServer[Any]:
    """Return an MCP server with some of the tools, in front of a Steelyard server's API."""
    server = _Server(options, names)

    @server.resource("steelyard://recipes/{recipe}", mime_type="application/json")
    async def recipe_of(recipe: str, ctx: Context[Any]) -> str:
        """Return a ready-made decision by its id."""
        with _as_resource():
            async with server.client(ctx) as client:
                recipes = (await client.recipes()).data
            for ready_made in recipes:
                if ready_made.id == recipe:
                    return msgspec.json.encode(ready_made).decode()
            raise NotFoundError(f"There is no recipe {recipe!r}; see the tool list_recipes.")

    @server.resource("steelyard://datasets/{dataset}", mime_type="application/json")
    async def dataset_card(dataset: str, ctx: Context[Any]) -> str:
        """Return a dataset's decisions, and its number of rows of each kind."""
        with _as_resource():
            async with server.client(ctx) as client:
                return msgspec.json.encode(await client.datasets.get(dataset)).decode()

    @server.resource("steelyard://llms.txt", mime_type="text/plain")
    def llms() -> str:
        """Return the API in a page, for language models."""
        return files("steelyard.http").joinpath("llms.txt").read_text(encoding="utf-8")

    return server


def make_app(url: str, path: str) -> tuple[Any, Callable[[], AbstractAsyncContextManager[None]]]:
    """Return an ASGI application of all tools, which checks neither hosts nor origins, and its context."""
    server = make_server(ClientOptions(url))
    app = server.streamable_http_app(
        json_response=True,
        stateless_http=True,
        streamable_http_path=path,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    return app, server.session_manager.run


@contextmanager
def _as_resource() -> Iterator[None]:
    """Raise the API's refusals as the protocol's, and not as faults of this server."""
    try:
        yield
    except NotFoundError as error:
        raise ResourceNotFoundError(refusal(error)) from error
    except SteelyardError as error:
        raise ResourceError(refusal(error)) from error


async def scope_of(options: ClientOptions) -> str:
    """Return the scope of a key; without accounts every call may do all."""
    async with AsyncClient(options) as client:
        try:
            summary = await client.account.get()
        except KeyScopeError:
            return "inference"  # the one scope that may not read its account
        if summary.accounts_enabled and options.api_key:
            async for key in client.account.keys(revoked=False):
                if options.api_key.startswith(key.prefix):
                    return str(key.scope)
    return "full"


def refusal(error: SteelyardError) -> str:
    """Return an error as text that an agent can act on: code, message, and each place."""
    places = [
        f"{'.'.join(map(str, detail['path'])).removeprefix('body.')}: {detail['message']}"
        for detail in error.details or ()
        if "path" in detail and "message" in detail
    ]
    return "\n".join([f"{error.code}: {error.message}", *places[:20]])
