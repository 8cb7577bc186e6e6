"""A tool for each named decision: its argument is the context, and its answer has the version's outcomes."""

from __future__ import annotations

import logging
from typing import Any

import mcp_types as types
from msgspec import Struct

from steelyard.client import AsyncClient
from steelyard.client.answers import DecideAnswer
from steelyard.decisions.validation import read_request
from steelyard.decisions.wire import ABSTAIN
from steelyard.errors import SteelyardError
from steelyard.mcp.tools import ContextArgument, schema_of
from steelyard.named.wire import NamedDecision, NamedVersion

_log = logging.getLogger(__name__)

#: What the name of such a tool begins with.
PREFIX = "decision_"
#: Named decisions that are offered, the newest ones.
_MOST = 50


class NamedArguments(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The context for a named decision."""

    context: ContextArgument


async def named_tools(client: AsyncClient) -> list[types.Tool]:
    """Return a tool for each named decision of the caller's account."""
    tools: list[types.Tool] = []
    async for decision in client.named_decisions.list(page_size=_MOST):
        try:
            version = await client.named_decisions.version(decision.name)
            tools.append(_tool(decision, version))
        except SteelyardError as error:
            # One that cannot be read takes no others away.
            _log.warning("%r is not offered as a tool: %s", decision.name, error.message)
        if len(tools) == _MOST:
            break
    return tools


async def ask_named(client: AsyncClient, tool: str, arguments: NamedArguments) -> DecideAnswer:
    """Return a named decision's answer."""
    return await client.decision(tool.removeprefix(PREFIX)).decide(arguments.context)


def _tool(decision: NamedDecision, version: NamedVersion) -> types.Tool:
    questions = read_request({"context": "", "decisions": version.decisions}).decisions
    wording = " ".join(str(question.question) for question in questions)
    answer = schema_of(DecideAnswer)
    results: dict[str, Any] = {}
    for question in questions:
        names = list(question.outcomes.names)
        actions = names
        if question.policy is not None:
            actions = [*(question.policy.actions or names), ABSTAIN]
        results[question.id] = {
            "type": "object",
            "properties": {
                "top": {"enum": names},
                "p_top": {"type": "number"},
                "action": {"enum": actions},
                "probabilities": {
                    "type": "object",
                    "properties": {name: {"type": "number"} for name in names},
                },
            },
            "required": ["top", "p_top", "action", "probabilities"],
        }
    answer["properties"] = {
        **answer["properties"],
        "decisions": {"type": "object", "properties": results, "required": list(results)},
    }
    return types.Tool(
        name=f"{PREFIX}{decision.name}",
        description=f"{decision.description or ''} {wording}".strip()[:1_000],
        input_schema=schema_of(NamedArguments),
        output_schema=answer,
        annotations=types.ToolAnnotations(
            read_only_hint=False, destructive_hint=False, open_world_hint=False
        ),
    )
