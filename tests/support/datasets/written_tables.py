"""Tables as other programs write them, in every encoding, and the rows that they hold."""

from __future__ import annotations

import csv
import io
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import polars as pl
from hypothesis import strategies as st

from steelyard.client.tables import read_table

#: Codecs with sentences of the languages that are written in them.
LANGUAGES = {
    "cp1252": [
        "Où est ma facture ?",
        "Größe passt nicht",
        "Café crème, 5 €",
        "déjà payé",
        "¿Dónde está?",
    ],
    "cp932": ["荷物がまだ届きません。", "二重に請求されました", "返金してください", "ありがとう"],
    "euc_jp": ["荷物がまだ届きません。", "いつ届くか教えてください。", "請求書をください"],
    "gb18030": ["我的包裹还没有到", "我被重复扣款了，请退款", "请问什么时候能送到？"],  # noqa: RUF001
    "big5": ["我的包裹還沒有到", "我被重複扣款了，請退款", "請問什麼時候能送到？"],  # noqa: RUF001
    "euc_kr": ["제 소포가 아직 도착하지 않았습니다", "두 번 청구되었어요", "환불해 주세요"],
}
WIDE = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be")
#: Texts that readers of tables take for something else.
ODD = [
    "", " ", "plain", 'a "quote"', '"', '""', '5" screen', "a, comma", "a; b", "a\tb", "a|b", "two\nlines",
    "two\r\nlines", "a\r", " around ", "007", "1e9", "NaN", "null", "None", "true", "=1+1", "-1", "#N/A",
    "[1, 2]", '{"a": 1}', "'", "\\", "\\n", "sep=;", "_x000D_", "x" * 300, "a,b\nc,d\ne,f\ng,h\ni,j",
]  # fmt: skip
WRITERS = [
    "csv",
    "csv, all quoted",
    "tsv",
    "semicolons",
    "pandas",
    "polars",
    "excel",
    "openpyxl",
    "parquet",
    "datasets",
]


@dataclass(frozen=True)
class Written:
    """A table, who writes it, and how."""

    columns: list[str]
    rows: list[list[str]]
    writer: str
    codec: str

    def data(self) -> bytes:
        """Return the file."""
        return _write(self)


@st.composite
def written_tables(draw):
    """Tables of a few columns and rows, with a writer and an encoding that can write them."""
    writer = draw(st.sampled_from(WRITERS))
    codec = draw(st.sampled_from([*LANGUAGES, *WIDE]))
    if codec in LANGUAGES and writer not in {"excel", "openpyxl", "parquet", "datasets"}:
        texts = st.sampled_from([*LANGUAGES[codec], *ODD])
    else:
        signs = st.characters(blacklist_categories=["Cs"], blacklist_characters="\x00")
        texts = st.one_of(st.sampled_from(ODD), st.text(signs, max_size=12))
    if writer == "openpyxl":
        # It writes no controls, and \r and _x000D_ as they are, which mean other characters in XML.
        texts = texts.map(
            lambda text: "".join(
                sign for sign in text.replace("_x", "") if sign >= " " or sign in "\t\n"
            )
        )
    names = draw(
        st.lists(
            st.sampled_from(["text", "team", "note", "n", "a b"]),
            min_size=1,
            max_size=4,
            unique=True,
        )
    )
    row = st.lists(texts, min_size=len(names), max_size=len(names))
    rows = draw(st.lists(row, min_size=1, max_size=7))
    return Written(names, rows, writer, codec)


def difference(table: Written) -> str | None:
    """Return how the table read differs in silence from the one written; ``None`` if in nothing."""
    try:
        data = table.data()
    except UnicodeError:
        return None  # the encoding has no such character
    try:
        read = read_table(data, f"rows, by {table.writer}")
    except ValueError:
        return None  # it is told
    if read.notes:
        return None
    if list(read.columns) != table.columns:
        return f"columns {read.columns} of {table.columns}"
    rows, expected = _filled(cells for _, cells in read.rows), _filled(table.rows)
    left = iter(expected)
    is_measured = len(rows) == len(expected) or read.refused
    return None if is_measured and all(row in left for row in rows) else f"{rows} of {expected}"


def _filled(rows):
    """Return the rows that have a cell; cells of blanks are empty ones."""
    filled = ([cell if cell is not None and cell.strip() else None for cell in row] for row in rows)
    return [row for row in filled if any(cell is not None for cell in row)]


def _write(table: Written) -> bytes:
    frame = pl.DataFrame(table.rows, schema=dict.fromkeys(table.columns, pl.String), orient="row")
    if table.writer in {"excel", "openpyxl"}:
        return _excel(table)
    if table.writer == "parquet":
        file = io.BytesIO()
        frame.write_parquet(file)
        return file.getvalue()
    if table.writer == "datasets":
        import datasets

        file = io.BytesIO()
        datasets.Dataset.from_dict(frame.to_dict(as_series=False)).to_parquet(file)
        return file.getvalue()
    if table.writer == "polars":
        return frame.write_csv().encode(table.codec)
    if table.writer == "pandas":
        text = pd.DataFrame(table.rows, columns=table.columns).to_csv(
            index=False, lineterminator="\r\n"
        )
        return text.encode(table.codec)
    separator = {"tsv": "\t", "semicolons": ";"}.get(table.writer, ",")
    quoting = csv.QUOTE_ALL if "quoted" in table.writer else csv.QUOTE_MINIMAL
    file_ = io.StringIO(newline="")
    csv.writer(file_, delimiter=separator, quoting=quoting).writerows([table.columns, *table.rows])
    return file_.getvalue().encode(table.codec)


def _excel(table: Written) -> bytes:
    if table.writer == "openpyxl":
        import openpyxl

        book = openpyxl.Workbook()
        for row in [table.columns, *table.rows]:
            book.active.append(row)
            for cell in book.active[book.active.max_row]:
                if cell.value is not None:
                    cell.data_type = "s"
        file = io.BytesIO()
        book.save(file)
        return file.getvalue()
    import xlsxwriter

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.xlsx")
        with xlsxwriter.Workbook(path) as book:
            sheet = book.add_worksheet()
            for place, row in enumerate([table.columns, *table.rows]):
                for column, cell in enumerate(row):
                    sheet.write_string(place, column, cell)
        return path.read_bytes()
