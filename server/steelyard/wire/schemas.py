"""JSON Schemas of structs, whose patterns other languages read as Python does."""

from __future__ import annotations

from typing import Any

from msgspec import Meta

#: How a pattern of a struct ends: ``$`` of Python also stands before a last line feed.
WHOLE = r"\Z"
#: A text on one line, such as a name for people.
SINGLE_LINE = rf"^[^\x00-\x1f\x7f]*{WHOLE}"
#: A text on several lines.
SEVERAL_LINES = rf"^[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f]*{WHOLE}"


def doc(text: str) -> Meta:
    """Return what a field's annotation says of it in the OpenAPI document."""
    return Meta(description=text)


def portable(schema: Any) -> Any:
    r"""Return a schema whose patterns end with ``$``, which is the end alone elsewhere and ``\Z`` a letter.

    >>> portable({"anyOf": [{"type": "string", "pattern": "^a\\Z"}]})
    {'anyOf': [{'type': 'string', 'pattern': '^a$'}]}
    """
    if isinstance(schema, list):
        return [portable(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: portable_pattern(value)
        if name == "pattern" and isinstance(value, str)
        else portable(value)
        for name, value in schema.items()
    }


def portable_pattern(pattern: str) -> str:
    """Return a pattern as other languages write it."""
    return f"{pattern[: -len(WHOLE)]}$" if pattern.endswith(WHOLE) else pattern
