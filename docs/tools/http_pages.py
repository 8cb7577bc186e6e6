"""Pages of the HTTP API, made from the OpenAPI document that the server answers with."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tables import table

FOLDER = "applications/http"
#: Titles of tags that are no title as they are.
_TITLES = {"compatibility": "Other clients' requests", "drafts": "Review", "decide": "Decide"}
_CODES = re.compile(r"`([a-z_]+)`")
#: Bounds of a value, as words before them.
_BOUNDS = {
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} entries",
    "maxItems": "at most {} entries",
    "minProperties": "at least {} entries",
    "maxProperties": "at most {} entries",
    "minimum": "at least {}",
    "exclusiveMinimum": "above {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "below {}",
    "pattern": "matches `{}`",
}

_NOT_EMPTY = {"at least 1 characters": "not empty", "at least 1 entries": "not empty"}

Json = Mapping[str, Any]


def read_document(root: Path) -> dict[str, Any]:
    """Return the OpenAPI document in the package."""
    [path] = (root / "server" / "steelyard").rglob("openapi.json")
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


def title_of(tag: str) -> str:
    """Return the title of a tag's page."""
    return _TITLES.get(tag, tag.capitalize())


def navigation(root: Path) -> dict[str, str]:
    """Return the pages in order: title to path."""
    tags = [entry["name"] for entry in read_document(root)["tags"]]
    return {
        "Overview": f"{FOLDER}/index.md",
        **{title_of(tag): f"{FOLDER}/{tag}.md" for tag in tags},
        "Shapes": f"{FOLDER}/shapes.md",
    }


def pages(root: Path) -> dict[str, str]:
    """Return the pages: path to Markdown."""
    document = read_document(root)
    by_tag: dict[str, list[tuple[str, str, Json]]] = defaultdict(list)
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            by_tag[operation["tags"][0]].append((method.upper(), path, operation))
    written = {
        f"{FOLDER}/{tag}.md": "\n\n".join(
            [f"# {title_of(tag)}", *(_operation(document, *entry) for entry in entries)]
        )
        for tag, entries in by_tag.items()
    }
    written[f"{FOLDER}/index.md"] = _overview(document, by_tag)
    written[f"{FOLDER}/shapes.md"] = _shapes(document)
    return written


def _overview(document: Json, by_tag: Mapping[str, list[tuple[str, str, Json]]]) -> str:
    parts = [
        "# HTTP API",
        document["info"]["description"],
        (
            "A running server answers this document as `GET /openapi.json`, and a short guide for "
            "coding agents as `GET /llms.txt`. What every refusal looks like is in "
            "[Errors](../errors.md)."
        ),
        "Any write may have these headers:",
        _parameters(list(document["components"]["parameters"].values())),
    ]
    for tag, entries in by_tag.items():
        parts.append(f"## {title_of(tag)}")
        parts.append(
            table(
                ("route", "what it does"),
                (
                    (f"[`{method} {path}`]({tag}.md#{_anchor(operation)})", operation["summary"])
                    for method, path, operation in entries
                ),
            )
        )
    return "\n\n".join(parts)


def _anchor(operation: Json) -> str:
    return str(operation["operationId"]).replace("_", "-")


def _operation(document: Json, method: str, path: str, operation: Json) -> str:
    parts = [
        f"## `{method} {path}` {{ #{_anchor(operation)} }}",
        operation["summary"],
        operation.get("description", ""),
    ]
    # Those that many routes share are in the overview.
    parameters = [one for one in operation.get("parameters", ()) if "$ref" not in one]
    if parameters:
        parts.append(_parameters(parameters))
    if "requestBody" in operation:
        parts.append(f"**Body.** {_contents(operation['requestBody']['content'])}")
    refusals = {}
    for status, reference in operation["responses"].items():
        response = _resolved(document, reference)
        if status.startswith("2"):
            content = response.get("content")
            parts.append(f"**Answer {status}.** {_contents(content) if content else 'No body.'}")
        else:
            refusals[status] = _CODES.findall(response["description"])
    told = "; ".join(
        f"{status} " + ", ".join(f"`{code}`" for code in codes)
        for status, codes in refusals.items()
    )
    parts.append(f"**Refusals.** {told}")
    return "\n\n".join(part for part in parts if part)


def _parameters(parameters: list[Json]) -> str:
    return table(
        ("parameter", "in", "type", "what it is"),
        (
            (
                f"`{one['name']}`" + (" (required)" if one.get("required") else ""),
                one["in"],
                _type(one["schema"]),
                _meaning(one["schema"], one.get("description", "")),
            )
            for one in parameters
        ),
    )


def _contents(content: Json) -> str:
    return "; or ".join(
        f"`{media_type}`: {_type(entry.get('schema', {}))}" for media_type, entry in content.items()
    )


def _shapes(document: Json) -> str:
    parts = ["# Shapes", "The objects that requests and answers are made of, by name."]
    for name, schema in sorted(document["components"]["schemas"].items()):
        parts.append(f"## {name} {{ #{name.lower()} }}")
        if "description" in schema:
            parts.append(schema["description"].replace("``", "`"))
        fields = schema.get("properties", {})
        required = set(schema.get("required", ()))
        if fields:
            parts.append(
                table(
                    ("field", "type", "what it is"),
                    (
                        (
                            f"`{field}`" + (" (required)" if field in required else ""),
                            _type(value),
                            _meaning(value),
                        )
                        for field, value in fields.items()
                    ),
                )
            )
        elif "properties" not in schema:
            parts.append(f"One of: {_type(schema)}.")
    return "\n\n".join(parts)


def _resolved(document: Json, value: Json) -> Json:
    """Return what a value refers to, or the value itself."""
    reference = value.get("$ref")
    if reference is None:
        return value
    found: Any = document
    for step in reference.removeprefix("#/").split("/"):
        found = found[step]
    return found  # type: ignore[no-any-return]


def _type(schema: Json) -> str:
    """Return the type of a value in a few words, with links to shapes."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](shapes.md#{name.lower()})"
    union = schema.get("anyOf") or schema.get("oneOf")
    if union:
        return " or ".join(dict.fromkeys(_type(part) for part in union))
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if values:
        return ", ".join(f"`{json.dumps(value)}`" for value in values)
    kind = str(schema.get("type", "any value"))
    parts = schema.get("items") or schema.get("additionalProperties")
    if isinstance(parts, Mapping) and parts:
        return f"{kind} of {_type(parts)}"
    if kind == "object" and "properties" in schema:
        return "fields " + ", ".join(f"`{name}`" for name in schema["properties"])
    return kind


def _meaning(schema: Json, description: str = "") -> str:
    """Return what a value means, with its bounds and its default."""
    parts = [description or schema.get("description", "")]
    for part in (schema, *schema.get("anyOf", ())):
        bounds = [text.format(part[name]) for name, text in _BOUNDS.items() if name in part]
        bounds = [_NOT_EMPTY.get(text, text) for text in bounds]
        if bounds:
            told = ", ".join(bounds)
            parts.append(told[0].upper() + told[1:] + ".")
    if isinstance(schema.get("default"), bool | int | float):
        parts.append(f"Default: `{json.dumps(schema['default'])}`.")
    return " ".join(part for part in parts if part).replace("``", "`")
