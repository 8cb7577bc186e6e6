"""Chats that language models are fine-tuned on: the last answer of the model is a row's label.

Read are OpenAI's chat format and its relatives: ShareGPT's ``conversations``, Gemini's ``contents``, a
system message beside the others, and OpenAI's evals, whose ``ideal`` is the answer to the ``input``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from steelyard.imports.items import AnnotatedText
from steelyard.imports.objects import Numbered

_LISTS = ("messages", "conversations", "contents", "input")
_SYSTEMS = ("system", "systemInstruction", "system_instruction")
#: Members of a line beside its messages. With any other it is a row of a table.
_BESIDE = frozenset(
    {
        *("id", "conversation_id", "custom_id", "metadata", "model", "source", "split", "weight"),
        *("ideal", "tools", "functions", "tool_choice", "function_call", "parallel_tool_calls"),
    }
)
_ROLES = {"human": "user", "gpt": "assistant", "model": "assistant", "developer": "system"}
#: Where a message has its text, or its parts.
_TEXTS = ("content", "value", "parts", "text")
#: Fields of an answer in JSON that are about the answer.
_NO_ANSWERS = frozenset(
    {*("confidence", "probability", "score"), *("explanation", "rationale", "reason", "reasoning")}
)
#: Different system messages of a file that are questions, and characters of one; others are a part of
#: each text.
_MOST_QUESTIONS, _LONGEST_QUESTION = 8, 10_000


def is_chat(row: Mapping[str, Any]) -> bool:
    """Return whether an object is a chat, and nothing beside it may be the text or the label."""
    name = next((name for name in _LISTS if name in row), None)
    messages = row.get(name) if name else None
    return (
        isinstance(messages, list)
        and bool(messages)
        and all(isinstance(message, Mapping) for message in messages)
        and all("role" in message or "from" in message for message in messages)
        and row.keys() <= {name, *_SYSTEMS, *_BESIDE}
    )


def read_chats(rows: Sequence[Numbered]) -> Iterator[tuple[int, AnnotatedText]]:
    """Yield the text of each chat with its label; a system message is the question."""
    chats = [(number, row, _messages(row)) for number, row in rows]
    systems = list(dict.fromkeys(_system_of(messages) for _, _, messages in chats))
    questions = {
        system: "label" if place == 0 else f"label {place + 1}"
        for place, system in enumerate(systems)
    }
    is_question = len(systems) <= _MOST_QUESTIONS and max(map(len, systems)) <= _LONGEST_QUESTION
    for number, row, messages in chats:
        system, question = _system_of(messages), "label"
        at, answer = next(
            (
                (place, message)
                for place, (role, message) in reversed(list(enumerate(messages)))
                if role == "assistant" and message.get("weight") != 0
            ),
            (len(messages), {}),
        )
        before = [message for message in messages[:at] if message[0] != "system"]
        item = AnnotatedText({"text": _transcript(before)})
        item.metadata = {name: row[name] for name in ("id", "source", "split") if name in row}
        item.metadata |= row["metadata"] if isinstance(row.get("metadata"), Mapping) else {}
        if is_question and system:
            question = questions[system]
            item.instructions[question] = system
        elif system:
            item.fields = {"system": system, **item.fields}
        if any(_has_image(message) for _, message in before):
            item.reason = "It has an image, and images are not read; describe it in the text."
        ideal = row.get("ideal")
        item.add(None, _answers(answer, question) if ideal is None else {question: ideal})
        yield number, item


def last_text(value: Any, role: str) -> Any:
    """Return the last text of a role in a chat or its messages; a value without one as it is."""
    if isinstance(value, Mapping):
        value = next((value[name] for name in _LISTS if isinstance(value.get(name), list)), value)
    messages = value if isinstance(value, list) else [value]
    texts = [
        _text(message)
        for message in messages
        if isinstance(message, Mapping) and _role_of(message) == role
    ]
    return next(filter(None, reversed(texts)), value)


def _messages(row: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the role of each message, and the message."""
    system = next((row[name] for name in _SYSTEMS if row.get(name)), None)
    first = [] if system is None else [("system", {"content": system})]
    messages = next(row[name] for name in _LISTS if name in row)
    return [*first, *((_role_of(message), message) for message in messages)]


def _role_of(message: Mapping[str, Any]) -> str:
    role = str(message.get("role", message.get("from"))).lower()
    return _ROLES.get(role, role)


def _system_of(messages: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    texts = [_text(message) for role, message in messages if role == "system"]
    return "\n\n".join(filter(None, texts))


def _transcript(messages: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """Return what was said, with who said it where that is more than the user."""
    if all(role == "user" for role, _ in messages):
        return "\n\n".join(_text(message) for _, message in messages)
    return "\n\n".join(f"{role}: {_text(message)}" for role, message in messages)


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "\n".join(filter(None, map(_text, value)))
    if isinstance(value, Mapping):
        return _text(next((value[name] for name in _TEXTS if value.get(name)), ""))
    return str(value).strip()


def _has_image(message: Mapping[str, Any]) -> bool:
    parts: Any = next((message[name] for name in _TEXTS if isinstance(message.get(name), list)), [])
    return any(
        isinstance(part, Mapping)
        and ("image" in str(part.get("type")) or not {"inlineData", "fileData"}.isdisjoint(part))
        for part in parts
    )


def _answers(message: Mapping[str, Any], question: str) -> dict[str, Any]:
    """Return the label that a model is to write, or each of the labels in an object that it writes."""
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    calls += [message["function_call"]] if message.get("function_call") else []
    text = str(calls[0]["arguments"]) if calls else _text(message)
    try:
        value = json.loads(text) if text.startswith("{") else text
    except ValueError:
        value = text
    if not isinstance(value, dict):
        return {question: value}
    answers = {
        str(name): answer
        for name, answer in value.items()
        if isinstance(answer, str | int | list) and str(name).lower() not in _NO_ANSWERS
    }
    return {question: next(iter(answers.values()))} if len(answers) == 1 else answers
