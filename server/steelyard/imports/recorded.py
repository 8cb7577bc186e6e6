"""Answers that were recorded elsewhere: text, answer and probability, from a table, JSON or spans."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from typing import Any

from steelyard.errors import NoRowsError
from steelyard.imports.chats import last_text

#: By field of an answer, the columns, fields and attributes that may have it.
_NAMES = {
    "context": ("context", "text", "input", "decision.context", "decision.text", "decision.input"),
    "answer": ("answer", "output", "label", "decision.answer", "decision.output"),
    "probability": ("probability", "confidence", "decision.probability", "decision.confidence"),
    "decision": ("decision", "decision.id", "decision.name"),
}


def read_recorded(content: bytes, name: str) -> list[dict[str, Any]]:
    """Return the answers of a file of some name as ``named_decisions.compare`` takes them.

    A CSV has columns, JSON and JSON Lines have objects with the fields ``text``, ``answer`` and
    perhaps ``probability`` and ``decision``. Of spans of OpenTelemetry (OTLP in JSON) the attributes
    ``decision.text``, ``decision.answer`` and so on are read, of requests to OpenAI's Decisions that were
    logged with their responses each answer, and of chats, as Langfuse exports them, the last messages.

    Raises
    ------
    NoRowsError
        Where the file has no such answer, or cannot be read.
    """
    try:
        text = content.decode("utf-8-sig")
        if text.lstrip()[:1] in {"{", "["}:
            records = [each for value in _values(text) for each in _records(value)]
        else:
            records = list(csv.DictReader(io.StringIO(text)))
        answers = [answer for record in records if (answer := _answer(record))]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise NoRowsError(f"{name} cannot be read: {error}. Correct it there.") from None
    if not answers:
        raise NoRowsError(
            f"{name} has no recorded answers: name the columns or fields text, answer and probability."
        )
    return answers


def _values(text: str) -> list[Any]:
    """Return the value of a JSON document, or those of its lines."""
    try:
        return [json.loads(text)]
    except ValueError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]


def _records(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of a document that may be answers; spans as their attributes."""
    if isinstance(value, list):
        for each in value:
            yield from _records(each)
    elif isinstance(value, dict):
        parts = [
            value[name]
            for name in ("resourceSpans", "scopeSpans", "spans", "data")
            if name in value
        ]
        for part in parts:
            yield from _records(part)
        if isinstance(value.get("attributes"), list):
            yield {
                str(each.get("key")): next(iter(dict(each.get("value") or {}).values()), None)
                for each in value["attributes"]
            }
        elif answered := _response(value).get("answers"):
            request = value.get("request") or value.get("input")
            context = request.get("input") if isinstance(request, dict) else request
            yield from ({"context": context, **_of_decisions(each)} for each in answered)
        elif not parts:
            yield value


def _response(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the response of a logged request: beside it, or in a field."""
    parts = (value, value.get("response"), value.get("output"))
    return next((part for part in parts if isinstance(part, dict) and part.get("answers")), {})


def _of_decisions(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer of OpenAI's Decisions as a record."""
    shares = {
        _text(each.get("label", each.get("value"))): each["probability"]
        for each in answer.get("probabilities") or ()
    }
    if answer.get("type") == "predicate":
        shares = {"yes": answer["probability"], "no": 1 - answer["probability"]}
    top = max(shares, key=shares.__getitem__)
    return {"answer": top, "probability": shares[top], "decision": answer.get("name")}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value).strip()


def _answer(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a recorded answer; empty where a text or its answer is missing."""
    answer = {
        field: value
        for field, names in _NAMES.items()
        if (value := next((record[name] for name in names if record.get(name)), None)) is not None
    }
    if "context" not in answer or "answer" not in answer:
        return {}
    answer["context"] = last_text(answer["context"], "user")
    answer["answer"] = _text(last_text(answer["answer"], "assistant"))
    if "probability" in answer:
        answer["probability"] = float(answer["probability"])
    return answer
