"""Typed fields beside a context, and the rules over them, on the wire."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from steelyard.wire.schemas import SINGLE_LINE, doc

#: The most fields and rules of a version, and the most characters of a condition and of a text.
MAX_FIELDS, MAX_RULES = 32, 50
MAX_CONDITION, MAX_TEXT = 500, 2_000

FieldType = Literal["integer", "decimal", "text", "boolean", "date"]
Action = Annotated[str, Meta(min_length=1, max_length=128, pattern=SINGLE_LINE)]


class FieldInput(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A field that requests have beside their context."""

    type: FieldType
    optional: Annotated[bool | None, doc("Whether a request may leave it out, or send null.")] = (
        None
    )
    description: Annotated[Annotated[str, Meta(max_length=500)] | None, Meta()] = None


class RuleInput(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An action, and the condition under which it is taken."""

    when: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=MAX_CONDITION,
            pattern=SINGLE_LINE,
            description="Such as `p.refund > .9 and amount < 50`.",
        ),
    ]
    action: Action


#: Fields that a version declares, by name.
Fields = Annotated[
    dict[str, FieldInput],
    Meta(
        max_length=MAX_FIELDS,
        description="Fields that requests have beside their context, by names of small letters, digits and "
        "`_`, at most 64, the first a letter.",
    ),
]
Rules = Annotated[
    list[RuleInput],
    Meta(min_length=1, max_length=MAX_RULES, description="The first whose condition holds acts."),
]
#: Values of fields in a request.
FieldValues = Annotated[
    dict[str, Any],
    Meta(
        max_length=MAX_FIELDS,
        description="Values of the fields that the version declares: a decimal is a number or a text "
        "such as `120.50`, a date a text such as `2026-10-01`.",
    ),
]


class RuleResult(Struct, frozen=True, kw_only=True):
    """The action that the rules of a named decision take."""

    action: str
    number: Annotated[int | None, doc("Of the rule that holds, from 1; null where none does.")]
    why: Annotated[str, doc("Its condition in words.")]
