"""A table as a folder of Hugging Face ``datasets``: a card that describes it, and Parquet files.

Labels are ``ClassLabel`` features: their numbers stand in the files, their names in the card and in
each file's schema, so that a file alone tells them too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from steelyard.exports.table import Column, ExportTable, codes_of

README = "README.md"
_FEATURES = b"huggingface"
#: The library copies no part without rows, and then finds none: github.com/huggingface/datasets/pull/8401.
_NO_ROWS = (
    "There are no rows. `datasets` refuses a part without rows unless it streams (`Instruction "
    '"train" corresponds to no data!`); streamed, it has these columns and no row:'
)
#: What YAML does not take as it is; pairs of surrogates are no characters there.
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufdd0-\ufdef\ufeff\ufffe\uffff]")


def path_of(split: str) -> str:
    """Return where the rows of a part are in the folder."""
    return f"data/{split}-00000-of-00001.parquet"


def coded_schema(table: ExportTable) -> pa.Schema:
    """Return the columns as the files have them, labels as numbers."""
    labels = {
        column.name: {"_type": "ClassLabel", "names": list(column.names)}
        for column in table.columns
        if column.names is not None
    }
    fields = [
        pa.field(column.name, column.type if column.names is None else pa.int64())
        for column in table.columns
    ]
    features = json.dumps({"info": {"features": labels}})
    return pa.schema(fields, metadata={_FEATURES: features.encode()})


def coded(table: ExportTable, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch with labels as numbers."""
    arrays = [
        values if column.names is None else codes_of(values, column.names)
        for column, values in zip(table.columns, batch.columns, strict=True)
    ]
    return pa.record_batch(arrays, schema=schema)


def card(table: ExportTable, splits: Sequence[str], *, has_rows: bool = True) -> str:
    """Return the card, whose front matter describes the columns and the parts."""
    lines = ["---", f"pretty_name: {_yaml(table.title)}", "configs:", "- config_name: default"]
    lines += ["  data_files:"]
    for split in splits:
        lines += [f"  - split: {split}", f"    path: {_yaml(path_of(split))}"]
    lines += ["dataset_info:", "  features:"]
    for column in table.columns:
        lines += [f"  {line}" for line in _feature(column)]
    lines += ["---", "", f"# {_inline(table.title)}", "", table.about, "", "| column | holds |"]
    lines += ["|---|---|"]
    lines += [f"| `{_inline(column.name)}` | {column.about} |" for column in table.columns]
    if not has_rows:
        lines += ["", _NO_ROWS]
    how = "" if has_rows else ", streaming=True"
    lines += ["", "```python", "from datasets import load_dataset", ""]
    lines += [f'rows = load_dataset("path/to/this/folder"{how})', "```", ""]
    return "\n".join(lines)


def _feature(column: Column) -> list[str]:
    name = f"- name: {_yaml(column.name)}"
    if column.names is not None:
        names = [
            f"        {_yaml(str(at))}: {_yaml(label)}" for at, label in enumerate(column.names)
        ]
        return [name, "  dtype:", "    class_label:", "      names:", *names]
    if not pa.types.is_list(column.type):
        return [name, f"  dtype: {_scalar(column.type)}"]
    item = column.type.value_type
    if not pa.types.is_struct(item):
        return [name, f"  list: {_scalar(item)}"]
    fields = [
        line
        for field in item
        for line in (f"  - name: {_yaml(field.name)}", f"    dtype: {_scalar(field.type)}")
    ]
    return [name, "  list:", *fields]


def _scalar(type_: pa.DataType) -> str:
    return {"double": "float64"}.get(str(type_), str(type_))


def _yaml(text: str) -> str:
    """Return a text as YAML takes it: JSON, with unprintable characters escaped."""
    return _UNPRINTABLE.sub(_escape, json.dumps(text, ensure_ascii=False))


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def _inline(text: Any) -> str:
    """Return a text as one line of Markdown, in a table too."""
    return " ".join(str(text).split()).replace("|", "\\|").replace("`", "'")
