"""Chats that language models are fine-tuned on: the last answer is the label."""

from __future__ import annotations

import json

import pytest

from steelyard.client.tables import convert, guess_mapping, guess_split, read_table


def converted(rows):
    table = read_table("\n".join(map(json.dumps, rows)).encode())
    made = convert(table, guess_mapping(table))
    return table, made, [json.loads(line) for line in made.lines]


TASK = "Which team answers it? Write a or b."


def chat(answer, *before, system=TASK, n=1, **fields):
    said = [{"role": "user", "content": text} for text in before or [f"message {n}"]]
    first = [{"role": "system", "content": system}] if system else []
    answers = [{"role": "assistant", "content": answer, **fields}] if answer or fields else []
    return {"messages": [*first, *said, *answers]}


def in_parts(text):
    return [{"type": "text", "text": text}]


CHATS = {
    "a system message": [chat("a", "one text"), chat("b", "two text")],
    "parts": [
        chat(in_parts(answer), in_parts(text), system=in_parts(TASK))
        for text, answer in (("one text", "a"), ("two text", "b"))
    ],
    "a tool": [
        chat(None, f"{text} text", tool_calls=[{"function": {"arguments": f'{{"x": "{answer}"}}'}}])
        for text, answer in (("one", "a"), ("two", "b"))
    ],
    "JSON": [
        chat(json.dumps({"team": answer, "reason": "so", "confidence": 0.5}), f"{text} text")
        for text, answer in (("one", "a"), ("two", "b"))
    ],
    "system beside": [
        {"system": TASK, **chat(answer, f"{text} text", system=None)}
        for text, answer in (("one", "a"), ("two", "b"))
    ],
    "ShareGPT": [
        {
            "id": text,
            "conversations": [
                {"from": "system", "value": TASK},
                {"from": "human", "value": f"{text} text"},
                {"from": "gpt", "value": answer},
            ],
        }
        for text, answer in (("one", "a"), ("two", "b"))
    ],
    "evals": [
        {"input": chat(None, f"{text} text")["messages"], "ideal": answer}
        for text, answer in (("one", "a"), ("two", "b"))
    ],
    "Gemini": [
        {
            "systemInstruction": {"parts": [{"text": TASK}]},
            "contents": [
                {"role": "user", "parts": [{"text": f"{text} text"}]},
                {"role": "model", "parts": [{"text": answer}]},
            ],
        }
        for text, answer in (("one", "a"), ("two", "b"))
    ],
}


@pytest.mark.parametrize("rows", CHATS.values(), ids=CHATS)
def test_the_last_answer_of_a_chat_is_its_label(rows):
    _, _, found = converted(rows)
    assert [row["context"] for row in found] == ["one text", "two text"]
    assert [row["targets"] for row in found] == [{"label": "a"}, {"label": "b"}]
    assert {row["decisions"][0]["question"] for row in found} == {TASK}
    table, _, _ = converted(
        [{**row, "split": split} for row, split in zip(rows, ("train", "test"), strict=True)]
    )
    assert guess_split(table) == "split"


def test_a_chat_has_the_turns_before_its_label_as_context():
    rows = [chat("ab"[n % 2], n=n) for n in range(8)]
    turns = [("user", "hello"), ("assistant", "Go on."), ("user", "more"), ("assistant", "a")]
    rows.append({"messages": [{"role": role, "content": text} for role, text in turns]})
    rows[-1]["messages"].insert(0, {"role": "system", "content": TASK})
    rows.append(chat("b", n=9, weight=0))
    rows.append(chat(None, n=10))
    image = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    rows.append(chat("a", [*in_parts("See it."), image]))
    _, made, found = converted(rows)
    assert found[-1]["context"] == "user: hello\n\nassistant: Go on.\n\nuser: more"
    assert [row.line for row in made.refused] == [12, 10, 11]
    assert "images are not read" in made.refused[0].reason


def test_each_system_message_is_a_question_unless_each_text_has_its_own():
    rows = [chat("ab"[n % 2], n=n) for n in range(4)]
    rows += [chat(["yes", "no"][n % 2], n=n, system="Is it angry?") for n in range(4)]
    _, _, found = converted(rows)
    assert [list(row["targets"].items()) for row in found[3:5]] == [
        [("label", "b")],
        [("label_2", "yes")],
    ]
    assert found[4]["decisions"][0]["question"] == "Is it angry?"
    _, _, found = converted([chat("ab"[n % 2], n=n, system=f"Task {n}") for n in range(9)])
    assert found[8]["context"] == {"system": "Task 8", "text": "message 8"}
    long = "Go by the guideline. " * 20
    table, _, found = converted([chat("ab"[n % 2], n=n, system=long) for n in range(4)])
    decision = found[0]["decisions"][0]
    assert (decision["question"], decision["guideline"]) == ("Which label fits?", long.strip())
    assert "419 characters" in guess_mapping(table).labels[0].note


def test_answers_that_are_free_text_are_no_labels():
    replies = [chat(f"Thank you for message {n}, we look at it.", n=n) for n in range(12)]
    table = read_table("\n".join(map(json.dumps, replies)).encode())
    assert guess_mapping(table).labels == ()
