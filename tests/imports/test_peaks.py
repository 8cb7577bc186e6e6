"""The memory that reading a hostile table takes, measured in a process of its own."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from openpyxl import Workbook

from steelyard.client.tables import guess_mapping, guessing, read_table

GROWTH_MIB = 300

#: Reads each file as an import does, and prints by how many MiB the most memory grew.
SCRIPT = """
import re, sys
from pathlib import Path
from steelyard.client.tables import convert, guess_mapping, read_table, with_single_truths

def mib(name):
    return int(re.search(name + r":\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) >> 10

for path in sys.argv[1:]:
    Path("/proc/self/clear_refs").write_text("5")
    before = mib("VmRSS")
    try:
        table = read_table(Path(path))
        said = with_single_truths(convert(table, guess_mapping(table))).n_rows
    except ValueError as error:
        said = error
    print(mib("VmHWM") - before, said)
"""


def lines(rows):
    return "\n".join(map(json.dumps, rows)).encode()


def _write_workbook(path, n_cells, n_characters):
    """Write a workbook of one text, once, and cells that all have it."""
    with io.BytesIO() as made:
        Workbook().save(made)
        with (
            zipfile.ZipFile(made) as empty,
            zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book,
        ):
            for name in empty.namelist():
                if "sheet1" not in name:
                    book.writestr(name, empty.read(name))
            cell = '<c t="inlineStr"><is><t>' + "word " * (n_characters // 5) + "</t></is></c>"
            rows = f"<row>{cell}</row>" * n_cells
            space = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
            sheet = f"<worksheet {space}><sheetData>{rows}</sheetData></worksheet>"
            book.writestr("xl/worksheets/sheet1.xml", sheet)


def _write_files(folder: Path) -> dict[str, str]:
    """Write tables of up to 10 MiB; return the expected refusal of each."""
    texts = [{"text": f"words {n}", "label": "ab"[n % 2]} for n in range(1_000)]
    deep = "[" * 10_000 + "]" * 10_000
    row = '{"text":"a b","label":"a","x":' + '{"a":' * 200 + "1" + "}" * 201
    files = {
        "nested.json": f"[{','.join([row] * 8_000)}]".encode(),
        "nested.jsonl": "\n".join([row] * 8_000).encode(),
        "tiny.csv": b"text,label\none a,a\ntwo b,b\nthree a,a\nfour b,b\n",
        "names.jsonl": lines({f"n{row}_{n}": n for n in range(100)} for row in range(5_000)),
        "columns.csv": (",".join(map(str, range(1_000_000))) + "\n" + "," * 999_999).encode(),
        "deep.jsonl": b"\n".join(
            b'{"text":"a b","label":"a","x":%s}' % deep.encode() for _ in range(90)
        ),
    }
    for name, content in files.items():
        (folder / name).write_bytes(content)
    pq.write_table(
        pa.table({f"c{n}": pa.nulls(1, pa.int8()) for n in range(5_000)}), folder / "wide.parquet"
    )
    values = pa.array([[None] * 20_000] * 1_000, pa.list_(pa.int8()))
    columns = {name: [row[name] for row in texts] for name in ("text", "label")}
    pq.write_table(pa.table({**columns, "x": values}), folder / "nulls.parquet")
    _write_workbook(folder / "cells.xlsx", n_cells=70, n_characters=1_000_000)
    return {
        "cells.xlsx": "unpacks to more than",
        "tiny.csv": "4",
        "nested.json": "1,000,000 lists and objects",
        "nested.jsonl": "1,000,000 lists and objects",
        "names.jsonl": "over 4,096 columns",
        "columns.csv": "over 4,096 columns",
        "deep.jsonl": "nested too deep",
        "wide.parquet": "over 4,096 columns",
        "nulls.parquet": "1000",
    }


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_no_table_of_a_few_mebibytes_takes_300(tmp_path):
    expected = _write_files(tmp_path)
    paths = [str(tmp_path / name) for name in expected]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *paths], capture_output=True, text=True, check=True
    )
    for (name, said), line in zip(expected.items(), done.stdout.splitlines(), strict=True):
        n_mib, _, text = line.partition(" ")
        assert said in text, name
        assert int(n_mib) < GROWTH_MIB, (name, line)


def test_empty_cells_are_not_looked_into(monkeypatch):
    looked = []
    monkeypatch.setattr(guessing, "label_names", lambda cell: looked.append(cell) or [str(cell)])
    rows = [{"text": f"two words {n}", f"n{n}": "x"} for n in range(60)]
    guess_mapping(read_table(lines(rows)))
    assert len(looked) < 3 * len(rows)
