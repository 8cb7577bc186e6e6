"""The sides of imported rows: folders that ``datasets`` saved, names of files, and columns."""

from __future__ import annotations

import io
import json
import zipfile
from collections import Counter

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from steelyard.client.tables import convert, guess_mapping, read_table


def converted(data):
    table = read_table(data)
    return convert(table, guess_mapping(table))


def saved(folder, *, many=False):
    """Write a folder as ``save_to_disk`` does: a folder for each split."""
    class_label = {"names": ["ham", "spam"], "_type": "ClassLabel"}
    feature = {"feature": class_label, "_type": "List"} if many else class_label
    metadata = {"huggingface": json.dumps({"info": {"features": {"label": feature}}})}
    type_ = pa.list_(pa.int64()) if many else pa.int64()
    schema = pa.schema([("text", pa.string()), ("label", type_)], metadata=metadata)
    for name, n_rows in (("train", 20), ("test", 6), ("unsupervised", 2)):
        (folder / name).mkdir(parents=True)
        labels = [-1 if name == "unsupervised" else n % 2 for n in range(n_rows)]
        columns = {
            "text": [f"{name} {n}" for n in range(n_rows - 1)] + ["in both"],
            "label": [[label] for label in labels] if many else labels,
        }
        path = str(folder / name / "data-00000-of-00001.arrow")
        with pa.OSFile(path, "wb") as file, pa.ipc.new_stream(file, schema) as writer:
            writer.write_table(pa.table(columns, schema=schema))
    (folder / "dataset_dict.json").write_text('{"splits": ["train", "test", "unsupervised"]}')
    return folder


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("folder", ["saved", ".cache/saved", "here/../saved"])
def test_splits_of_folders_are_sides(tmp_path, folder, many):
    (tmp_path / "here").mkdir()
    made = converted(saved(tmp_path / folder, many=many))
    sides = {side: [json.loads(line) for line in lines] for side, lines in made.parts.items()}
    assert {side: len(rows) for side, rows in sides.items()} == {"training": 19, "evaluation": 6}
    assert sides["evaluation"][1]["targets"] == {"label": "spam"}
    assert [row.reason for row in made.refused][:1] == [
        "Its context is on the evaluation side too; a model may not train on it."
    ]
    assert {row.file.split("/")[0] for row in made.refused} == {"train", "unsupervised"}
    assert made.notes[0] == "test: 6 rows, the evaluation side"
    assert made.notes[-1] == "2 rows of training have a context of the evaluation side."


FRAME = pl.DataFrame({"text": [f"a message {n}" for n in range(8)], "y": ["a", "b"] * 4})


def test_splits_of_file_names_and_columns_are_sides(tmp_path):
    train, test = FRAME.head(6), FRAME.tail(2)
    pq.write_table(train.to_arrow(), tmp_path / "train-00000-of-00001.parquet")
    pq.write_table(test.to_arrow(), tmp_path / "validation-00000-of-00001.parquet")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("rows/train.csv", train.write_csv())
        archive.writestr("rows/test.csv", test.write_csv())
    split = pl.Series("split", ["train"] * 6 + ["test"] * 2)
    column = FRAME.with_columns(split).write_csv().encode()
    for source in (tmp_path, packed.getvalue(), column):
        made = converted(source)
        assert {side: len(lines) for side, lines in made.parts.items()} == {
            "training": 6,
            "evaluation": 2,
        }
    # Whoever wrote them may have named columns otherwise in each, and the split too.
    test.rename({"text": "Text ", "y": "Y"}).write_csv(tmp_path / "test.csv")
    train.write_csv(tmp_path / "train.csv")
    for path in tmp_path.glob("*.parquet"):
        path.unlink()
    renamed = FRAME.with_columns(split.alias("Usage").replace({"test": "PublicTest"}))
    for source in (tmp_path, renamed.write_csv().encode()):
        assert Counter(converted(source).sides) == {"training": 6, "evaluation": 2}
    usage = split.replace({"train": "training"})
    objects = [
        {"text": text, "y": y, "dataItemResourceLabels": {"ml_use": part}}
        for (text, y), part in zip(FRAME.iter_rows(), usage, strict=True)
    ]
    assert Counter(converted(json.dumps(objects).encode()).sides) == {
        "training": 6,
        "evaluation": 2,
    }
    other = pl.Series("side", ["left", "right"] * 4)
    assert guess_mapping(read_table(FRAME.with_columns(other).write_csv().encode())).split is None
