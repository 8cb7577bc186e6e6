"""The recipe of the reader: its rows, its loss, and the folder that it exports."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="training needs the train extra: pip install steelyard[train]")

import numpy as np
import torch

from steelyard.scoring.tokenizer import Tokenizer
from steelyard_base_recipe.reader.line_only import line_log_probabilities
from steelyard_base_recipe.reader.model import Reader, read_start, to_batch
from steelyard_base_recipe.reader.rows import (
    Pool,
    ReaderRow,
    public_twins,
    read_kinds,
    read_public,
    read_written,
    twins_of,
)
from steelyard_base_recipe.reader.trainer import (
    ReaderRecipe,
    ReaderTrainer,
    judge_on,
    label_loss,
    logits_of,
    of_like_length,
    taught_logits,
)
from support.models.random_model import make_tokenizer_json


def make_written(group: int, text: str, line: str, label: int) -> dict[str, Any]:
    return {
        "source": "written/shop",
        "group": group,
        "form": "statement",
        "premise": text,
        "hypothesis": line,
        "label": label,
        "split": "train",
    }


WRITTEN = [
    make_written(group, f"the {topic} is {'late' if group % 2 else 'quick'}", line, label)
    for group, topic in enumerate(["train", "train", "book", "book", "city", "city"] * 4)
    for line, label in [
        (f"the {topic} is late", 1 - group % 2),
        (f"the {topic} is cold", 2),
    ]
]


def save(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    with gzip.open(path, "wb") as file:
        file.writelines(json.dumps(row).encode() + b"\n" for row in rows)
    return path


@pytest.fixture
def written(tmp_path: Path) -> list[ReaderRow]:
    return read_written(save(tmp_path / "written.jsonl.gz", WRITTEN), tmp_path)


def test_twins_share_a_line_in_neighbouring_groups(written: list[ReaderRow]) -> None:
    twins = twins_of(written)
    assert {(twin.true.line, twin.false.line) for twin in twins} == {
        (f"the {topic} is late",) * 2 for topic in ("train", "book", "city")
    }
    assert all("late" in twin.true.text and "quick" in twin.false.text for twin in twins)
    assert all(
        abs(int(twin.true.group.rsplit("/")[-1]) - int(twin.false.group.rsplit("/")[-1])) == 1
        for twin in twins
    )


def test_negation_swaps_true_and_false(written: list[ReaderRow]) -> None:
    row = next(row for row in written if row.label == 1)
    negated = row.as_negation()
    assert (negated.line, negated.label) == ("The train is not late.", 0)
    assert row.expert is not None
    assert negated.expert == (row.expert[1], row.expert[0], row.expert[2])
    assert row.as_statement().line == "The train is late."
    unstated = next(row for row in written if row.label == 2)
    assert unstated.as_negation().label == 2


def test_line_alone_is_judged_by_lines_of_other_texts() -> None:
    groups = [str(i // 2) for i in range(40)]
    lines = ["it is not so" if i % 2 else "it is so" for i in range(40)]
    shares = np.exp(line_log_probabilities(lines, [i % 2 for i in range(40)], groups))
    assert (shares.argmax(1) == [i % 2 for i in range(40)]).all()
    # A line that only its own group has says nothing of itself.
    lines[0], lines[1] = "zebra", "zebra"
    alone = np.exp(line_log_probabilities(lines, [i % 2 for i in range(40)], groups))
    assert alone[0] == pytest.approx(alone[1])


def test_sources_without_a_licence_are_left_out(tmp_path: Path) -> None:
    rows = [
        {"source": source, "premise": "a", "hypothesis": "b", "label": 0}
        for source in ("joci", "snli")
    ]
    path = save(tmp_path / "reading.jsonl.gz", rows)
    assert [row.source for row in read_public(path)] == ["snli", "snli"]
    assert len(read_public(path, left_out=frozenset())) == 3


def test_public_twins_share_a_line_and_most_words() -> None:
    def row(text: str, label: int, line: str = "Ada sold 40 boats.") -> ReaderRow:
        return ReaderRow("vitaminc", "", "statement", text, line, label, "train")

    true, false = row("In 1990 Ada sold 40 boats .", 0), row("In 1990 Ada sold 14 boats .", 1)
    far = row("The harbour of Hull was closed .", 1)
    [twin] = public_twins(
        [far, true, row("Nobody knows .", 2), false, row("No pair .", 1, "Else.")]
    )
    assert (twin.true.text, twin.false.text) == (true.text, false.text)
    assert twin.false.as_negation().line == "Ada did not sell 40 boats."
    assert public_twins([true, far]) == []


def test_kinds_are_as_often_true_as_false_and_surely_so(tmp_path: Path) -> None:
    refund = {"id": "r", "kind": "binary", "question": "Is it a refund?", "outcomes": ["yes", "no"]}
    team = {"id": "t", "kind": "single", "question": "Which team?", "outcomes": ["a", "b", "c"]}
    rows = [
        {
            "context": f"text {n}",
            "decisions": [refund, team],
            "targets": {"r": {"yes": 1.0} if n < 9 else {"no": 0.95}, "t": {"a": 0.6, "b": 0.4}},
            "source": "snips/x" if n % 2 else "banking77",
        }
        for n in range(12)
    ]
    path = tmp_path / "train.jsonl.gz"
    path.write_bytes(gzip.compress(b"\n".join(json.dumps(row).encode() for row in rows)))
    kinds = read_kinds(path)
    assert sorted(row.label for row in kinds) == [0, 0, 1, 1]
    assert {(row.source, row.form, row.line) for row in kinds} == {
        ("snips", "question", "Is it a refund?")
    }
    assert kinds[0].as_negation().line == "It is not a refund."


def test_batches_hold_every_row_once_within_the_budget() -> None:
    sizes = np.random.default_rng(0).integers(5, 60, size=200).tolist()
    batches = iter(Pool(sizes, 128, np.random.default_rng(1), window=4))
    places: list[int] = []
    while len(places) < len(sizes):
        batch = next(batches)
        assert max(sizes[i] for i in batch) * len(batch) <= 128 or len(batch) == 1
        places += batch
    assert sorted(places) == list(range(200))


def make_row(label: int, expert: tuple[float, ...] | None = None) -> ReaderRow:
    return ReaderRow("s", "g", "statement", "text", "line", label, "train", expert)


def test_loss_of_partial_labels_and_of_lines_that_give_themselves_away() -> None:
    logits = torch.log(torch.tensor([[0.5, 0.3, 0.2]]))
    for label, share in {0: 0.5, 1: 0.3, 2: 0.2, 3: 0.5, 4: 0.7}.items():
        assert float(label_loss(logits, [make_row(label)])) == pytest.approx(
            -np.log(share), abs=1e-6
        )
    # A line that says it all leaves nothing to learn from it.
    expert = tuple(np.log([0.98, 0.01, 0.01]).tolist())
    easy = label_loss(logits, [make_row(0, expert)])
    assert float(easy) < 0.1 < float(label_loss(logits, [make_row(0)]))


def test_training_learns_twins_and_goes_on_after_a_break(
    written: list[ReaderRow], tmp_path: Path
) -> None:
    tokenizer = Tokenizer(make_tokenizer_json(), name="t", revision="1")
    torch.manual_seed(0)
    twins = twins_of(written)
    lines: list[dict[str, Any]] = []

    def train(tokens: int) -> ReaderTrainer:
        recipe = ReaderRecipe(
            tokens=tokens,
            tokens_per_step=256,
            twin_tokens_per_step=200,
            learning_rate=3e-3,
            warmup_steps=1,
            decay=0.0,
            validate_every=10_000,
        )
        reader = Reader(layers=1, width=24, heads=2, words=30_522)
        trainer = ReaderTrainer(
            reader,
            tokenizer,
            written,
            written,
            written,
            twins,
            recipe,
            tmp_path / "run",
            lines.append,
        )
        trainer.run(judge_on(written, twins, written, 20))
        return trainer

    first = train(10_000)
    assert lines[-1]["twins_statement"] > 0.9
    again = train(12_000)
    assert again.step > first.step
    assert again.tokens >= 12_000
    assert [line["tokens"] for line in lines] == sorted(line["tokens"] for line in lines)


def test_rows_of_many_lengths_are_read_in_parts_and_answered_in_their_order() -> None:
    torch.manual_seed(0)
    reader = Reader(layers=1, width=24, heads=2).eval()
    sizes = np.random.default_rng(0).integers(20, 400, size=24)
    pairs = [([7, 8], [5 + i % 50] * int(size)) for i, size in enumerate(sizes)]
    parts = of_like_length([5 + int(size) for size in sizes])
    assert sorted(place for part in parts for place in part) == list(range(24))
    filled = sum(sizes) / sum(len(part) * max(sizes[i] for i in part) for part in parts)
    assert filled > 0.85 > sum(sizes) / (24 * max(sizes))
    with torch.no_grad():
        alone = torch.cat([logits_of(reader, [pair]) for pair in pairs])
        assert torch.allclose(logits_of(reader, pairs), alone, atol=0.02)


def test_padding_changes_nothing() -> None:
    torch.manual_seed(0)
    reader = Reader(layers=2, width=24, heads=2).eval()
    short, long = ((5, 6), (7, 8)), ((5, 6, 9), tuple(range(100, 140)))
    alone = reader(*to_batch([short]))
    together = reader(*to_batch([short, long]))
    assert torch.allclose(alone[0], together[0], atol=1e-6)


def test_first_layers_read_a_text_without_its_line_and_learn_from_a_joint_teacher() -> None:
    torch.manual_seed(0)
    reader, teacher = (Reader(layers=3, width=24, heads=2, apart=n).eval() for n in (1, 0))
    teacher.load_state_dict(reader.state_dict())
    text = tuple(range(100, 140))
    lines = ((5, 6), (7, 8, 9, 10))
    first, second = (reader.read(*to_batch([(line, text)]))[1] for line in lines)
    of_text = -len(text)
    assert torch.allclose(first[0][:, of_text:], second[0][:, of_text:], atol=1e-6)
    assert not torch.allclose(first[1][:, of_text:], second[1][:, of_text:], atol=1e-3)
    pairs = [(line, text) for line in lines]
    with torch.no_grad():
        assert float(taught_logits(teacher, teacher, pairs)[1]) == pytest.approx(0.0, abs=1e-6)
        logits, gap = taught_logits(reader, teacher, pairs)
    assert logits.shape == (2, 3)
    assert 0 < float(gap) < 1


@pytest.mark.filterwarnings("ignore")
def test_exported_folder_answers_as_the_reader_does(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    import onnxruntime
    import tokenizers

    from steelyard_base_recipe.reader.export import export

    torch.manual_seed(0)
    reader = Reader(layers=2, width=24, heads=2).eval()
    for parameter in reader.parameters():  # those that are all alike would be exported as one
        parameter.data += 0.05 * torch.randn_like(parameter)
    export(reader, make_tokenizer_json(), tmp_path / "out", manifest={"hypothesis_first": True})
    tokenizer = tokenizers.Tokenizer.from_file(str(tmp_path / "out" / "tokenizer.json"))
    pair = tokenizer.encode("the train is late", "bank money")
    session = onnxruntime.InferenceSession(str(tmp_path / "out" / "model.onnx"))
    logits = session.run(
        None,
        {
            "input_ids": np.array([pair.ids]),
            "token_type_ids": np.array([pair.type_ids]),
        },
    )[0]
    line, text = (
        tokenizer.encode(part, add_special_tokens=False).ids
        for part in ("the train is late", "bank money")
    )
    wanted = reader(*to_batch([(line, text)])).detach().numpy()
    assert np.allclose(
        logits, wanted, atol=0.2
    )  # int8 products saturate where a processor has no VNNI
    begun = read_start(tmp_path / "out" / "model.onnx").state_dict()
    for name, value in reader.state_dict().items():
        assert torch.allclose(begun[name], value, atol=0.02), name
