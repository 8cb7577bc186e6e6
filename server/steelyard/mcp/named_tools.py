"""A tool for each named decision: its argument is the context, and its answer has the version's outcomes."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import mcp_types as types
from msgspec import Struct

from steelyard.client import AsyncClient
from steelyard.client.answers import DecideAnswer
from steelyard.decisions.rules_wire import FieldValues
from steelyard.decisions.validation import decisions_of
from steelyard.decisions.wire import ABSTAIN
from steelyard.errors import SteelyardError
from steelyard.mcp.tools import ContextArgument, schema_of
from steelyard.named.wire import NamedDecision, NamedVersion

_log = logging.getLogger(__name__)

#: What the name of such a tool begins with.
PREFIX = "decision_"
#: Named decisions that are offered, the newest ones.
_MOST = 50
#: The types of JSON that values of declared fields have; a date is a text.
_JSON_TYPES: Mapping[str, str | list[str]] = {
    "integer": "integer",
    "decimal": ["number", "string"],
    "text": "string",
    "boolean": "boolean",
    "date": "string",
}


class NamedArguments(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The context for a named decision, and the fields that it declares."""

    context: ContextArgument
    fields: FieldValues | None = None


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
    return await client.decision(tool.removeprefix(PREFIX)).decide(
        arguments.context, fields=arguments.fields
    )


def _tool(decision: NamedDecision, version: NamedVersion) -> types.Tool:
    questions = decisions_of(version.decisions)
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
        input_schema=_arguments_schema(version),
        output_schema=answer,
        annotations=types.ToolAnnotations(
            read_only_hint=False, destructive_hint=False, open_world_hint=False
        ),
    )


def _arguments_schema(version: NamedVersion) -> dict[str, Any]:
    """Return the schema of the arguments, with the fields that a version declares."""
    schema = schema_of(NamedArguments)
    if version.fields:
        required = [name for name, field in version.fields.items() if not field.get("optional")]
        schema["properties"]["fields"] = {
            "type": "object",
            "properties": {
                name: {
                    "type": _JSON_TYPES[field["type"]],
                    "description": field.get("description") or f"A {field['type']}.",
                }
                for name, field in version.fields.items()
            },
            "required": required,
            "additionalProperties": False,
        }
        schema["required"] += ["fields"] if required else []
    return schema
