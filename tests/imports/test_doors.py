# ruff: noqa: RUF001  marks of other scripts
"""Faults of files that other readers pass over: each is read right, or reported with its place."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from contextlib import suppress

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from steelyard.batch.files import RowFile, write_rows
from steelyard.batch.scoring import Questions, decide_rows
from steelyard.client.packed_lines import PackedLines
from steelyard.client.row_sources import FrameColumns, pieces_of
from steelyard.client.tables import (
    Mapping,
    are_rows,
    convert,
    guess_mapping,
    label_of,
    name_values,
    read_lines,
    read_names,
    read_table,
    refused_csv,
)
from steelyard.imports.delimited import Options, read_delimited
from steelyard.imports.encodings import CODECS, Source, find_encoding
from steelyard.imports.table import Table, unique_names

LANGUAGES = {
    "Shift_JIS": ("cp932", ["注文の荷物がまだ届きません。いつ届くか教えてください。", "請求"]),
    "EUC-JP": ("euc_jp", ["二重に請求されました。返金してください。", "配送"]),
    "GB18030": ("gb18030", ["我的包裹还没有到，请问什么时候能送到？", "退款"]),
    "Big5": ("big5", ["我被重複扣款了，請退款給我，謝謝你們的幫忙", "帳單"]),
    "EUC-KR": ("euc_kr", ["두 번 청구되었어요. 환불해 주세요.", "배송"]),
    "Windows-1252": ("cp1252", ["Où est ma facture ? J'ai été débité deux fois", "5 €"]),
    "UTF-16": ("utf-16", ["Café 日本 🦆", "x"]),
}
#: Others that people have, each with a sentence.
OTHERS = {
    "KOI8-R": "Где мой заказ и почему он не пришёл",
    "Windows-1251": "С меня списали деньги дважды верните",
    "Windows-1250": "Gdzie jest moja paczka wciąż czekam źle",
    "ISO-8859-2": "Proszę o zwrot pieniędzy dziękuję źle",
    "Windows-1255": "ההזמנה עדיין לא הגיעה",
    "Windows-1256": "لم يصل الطلب حتى الآن",
    "Windows-874": "สินค้ายังไม่มาถึง",
    "ISO-8859-15": "Œuvre reçue très abîmée et 5 € de trop",
    "MacRoman": "Café reçu à onze heures et très déçu",
    "Shift_JIS": "ﾁｭｳﾓﾝ ｶﾞ ﾏﾀﾞ ﾄﾄﾞｷﾏｾﾝ",
    "Big5-HKSCS": "我啲貨仲未到，唔該幫我睇下喺邊度",
    "ISO-2022-JP": "注文の荷物がまだ届きません",
}


def read(data, **options):
    opened = read_delimited(Source("rows.csv", data), Options(**options))
    return [(line, list(cells)) for line, cells in opened.rows], opened


def converted(data, **options):
    table = read_table(data, **options)
    made = convert(table, guess_mapping(table))
    return table, made, [json.loads(line) for line in made.lines]


@pytest.mark.parametrize("name", LANGUAGES)
@pytest.mark.parametrize("offset", [0, 1])
def test_an_encoding_is_found_wherever_its_characters_are(name, offset):
    codec, texts = LANGUAGES[name]
    plain = [("x" * offset + f"Order {n} has not come", "billing") for n in range(9_000)]
    rows = [*plain, *[(text, "shipping") for text in texts]]
    text = io.StringIO(newline="")
    csv.writer(text).writerows([("message", "team"), *rows])
    found, opened = read(text.getvalue().encode(codec))
    assert opened.read_as == f"Text separated by commas, {name}"
    assert [tuple(cells) for _, cells in found] == rows


@pytest.mark.parametrize("name", OTHERS)
def test_other_encodings_are_found_too(name):
    data = f"text,team\n{OTHERS[name]},a\nplain,b\n".encode(CODECS[name])
    found, opened = read(data)
    assert opened.read_as == f"Text separated by commas, {name}"
    assert found[0][1][0] == OTHERS[name]


@pytest.mark.parametrize("codec", ["mac_cyrillic", "iso8859-5", "cp866"])
def test_an_encoding_that_is_not_known_is_not_taken_for_another(codec):
    data = f"text,team\n{OTHERS['KOI8-R']} для меня,a\n".encode(codec)
    with pytest.raises(ValueError, match="--encoding"):
        read(data)


@pytest.mark.parametrize(
    "text",
    [
        "I’d like it",
        "“Why?” he asked",
        "don’t",
        "late – again",
        "The café charged me",
        "100 € back",
        "La qualità del prodotto",
        "Llega mañana o no",
        "El número de pedido",
        "Nessuno telefonerà più",
        "Noël est demain",
        "Öffnen Sie bitte",
        "Schöne Reise",
        "Paketet är sent",
        "C’est l’œuvre du cœur n’est-ce pas ?",
        "„Nein“ – und so geht’s",
        "Dijo “no” – y se fue…",
        "Han sa ”nej” till Nisse’s bil",
    ],
)
def test_one_character_of_a_mac_is_no_other_of_windows(text):
    def table(codec):
        plain = "".join(f"plain words {n} here,{'ab'[n % 2]}\n" for n in range(20))
        return f"text,team\n{plain}{text},a\n".encode(codec)

    assert read(table("cp1252"))[0][-1][1][0] == text
    with suppress(ValueError):  # which asks for the encoding
        found, _ = read(table("mac_roman"))
        assert found[-1][1][0] == text


def test_an_encoding_that_is_not_certain_is_asked_for():
    data = "text,team\n退款 物流 0,a\n".encode("gb18030")
    with pytest.raises(ValueError, match=r"may be GB18030 or EUC-KR.*--encoding"):
        read(data)
    assert read(data, encoding="gb18030")[0] == [(2, ["退款 物流 0", "a"])]
    with pytest.raises(ValueError, match="give one of UTF-8"):
        read(data, encoding="klingon")
    with pytest.raises(ValueError, match="is not Big5: byte 7"):
        read(b"a,b\nx,\xff\n", encoding="big5")


def test_a_byte_that_is_wrong_costs_its_row_alone():
    data = "text,team\nCafé crème,a\n".encode() + b"Caf\xe9,b\n" + "déjà vu,b\n".encode()
    table, made, rows = converted(data)
    assert [row["context"] for row in rows] == ["Café crème", "déjà vu"]
    [left] = made.refused
    assert (left.line, left.reason) == (
        3,
        "It has the byte 0xE9, which is not UTF-8; write it as UTF-8.",
    )
    assert b"Caf\xe9,b" in refused_csv(table.columns, made.refused)


def test_a_mark_that_does_not_close_is_found_where_it_opens():
    data = b'a,b\n"x, ""y""",1\n"open,2\nq,3\n"w",4\n5" deep,5\n"z\r\nz",6\n"never,7\nl,8\n'
    rows, opened = read(data)
    assert rows == [
        (2, ['x, "y"', "1"]),
        (4, ["q", "3"]),
        (5, ["w", "4"]),
        (6, ['5" deep', "5"]),
        (7, ["z\r\nz", "6"]),
        (10, ["l", "8"]),
    ]
    assert [(row.line, row.cells) for row in opened.refused] == [
        (3, ['"open,2']),
        (9, ['"never,7']),
    ]
    assert "in line 9, character 1" in opened.refused[1].reason


NEWS = [
    ("Sport", "Der Verein gewann; die Fans riefen 'Bravo', sagte \"der Trainer\" `laut`"),
    ("Wirtschaft", 'Die Firma\nmeldet "Gewinn"; die Aktie stieg um 3,4\tProzent|'),
    ("Sport", "Ein 'kurzer' Satz"),
]


@pytest.mark.parametrize("mark", "\"'`")
@pytest.mark.parametrize("separator", ",;\t|")
@pytest.mark.parametrize("has_header", [True, False])
def test_the_quotation_mark_is_found_whichever_it_is(mark, separator, has_header):
    text = io.StringIO(newline="")
    out = csv.writer(text, delimiter=separator, quotechar=mark, quoting=csv.QUOTE_ALL)
    out.writerows([("kind", "text")] * has_header + NEWS * 5)
    table = read_table(text.getvalue().encode())
    assert [tuple(cells) for _, cells in table.rows] == NEWS * 5
    assert table.columns == (("kind", "text") if has_header else ("column 1", "column 2"))
    assert any("--quote" in note for note in table.notes) == (mark != '"')
    assert any("--header" in note for note in table.notes) == (not has_header)


def test_undetected_options_of_a_file_are_taken():
    data = b"short,a\nmore,b\nlast,a\n"
    assert "--no-header" in read_table(b"my text,a\nmore,b\nlast,a\n").notes[0]
    table = read_table(data, has_header=False)
    assert (table.columns, len(table.rows)) == (("column 1", "column 2"), 3)
    long = b"a text that is longer than any name of a column is,a\nmore,b\nlast,a\n"
    assert [read_table(long, has_header=chosen).rows[0][0] for chosen in (None, True)] == [1, 2]
    rows = read(b"text,team\n%it is, I think%,a\n", quote="%")[0]
    assert rows == [(2, ["it is, I think", "a"])]
    assert read(b"text,team\n'one',a\n'two',b\n", quote="")[0][0] == (2, ["'one'", "a"])


def test_quotation_marks_of_a_file_that_does_not_quote_are_cells():
    lines = ["message\tteam", '"Where is it\ta', '5" screen\tb', 'the 7"\ta']
    rows, opened = read("\n".join(lines).encode())
    assert [cells for _, cells in rows] == [line.split("\t") for line in lines[1:]]
    assert opened.notes == ["Quotation marks are part of the cells: its rows are not quoted."]
    assert read(b'a\tb\n"x\ty"\tz\n')[0] == [(2, ["x\ty", "z"])]


@pytest.mark.parametrize("n_lines", [6, 30])
def test_a_cell_that_swallowed_rows_is_left_out(n_lines):
    inner = "".join(f"message {n},billing\n" for n in range(n_lines))
    data = f'text,team\nfirst,a\n"The screen\n{inner}is 15",b\nlast,a\n"q, w",b\n'.encode()
    rows, opened = read(data)
    assert [cells[0] for _, cells in rows] == ["first", "last", "q, w"]
    assert f"a cell of {n_lines + 2} lines, to line {n_lines + 4}" in opened.refused[0].reason
    assert len(read(data, takes_long_cells=True)[0]) == 4
    mail = "Hello\n" + "I wait for it.\n" * 30
    rows, opened = read(f'text,team\n"{mail}",a\n'.encode())
    assert rows == [(2, [mail, "a"])]
    assert opened.notes == ["Line 2 begins a row of 32 lines; look whether it is one."]


def test_names_are_unique_and_reported():
    names, notes = unique_names(["text", "team 4", "team", "team", "", "team 2"])
    assert names == ("text", "team 4", "team", "team 3", "column 5", "team 2")
    assert notes == [
        "Column 4 is named team too; it is called team 3 here.",
        "Column 5 has no name; it is called column 5 here.",
    ]
    _, _, rows = converted(b"text,t 3,t,t\nlong text a,r,b,s\nlong text b,s,c,r\n")
    assert rows[0]["targets"] == {"t_3": "r", "t": "b", "t_2": "s"}


@pytest.mark.parametrize(
    "above",
    ["Exported on 1 March\n\n", "Exported on 1 March,,\n", "Report\nFrom 1 March\n\n"],
)
def test_a_title_is_no_row(above):
    data = f"{above}message,team,n\n" + "a long message,x,1\nanother one,y,2\n" * 5
    table = read_table(data.encode())
    assert table.columns == ("message", "team", "n")
    assert len(table.rows) == 10
    assert table.rows[0][0] == above.count("\n") + 2
    assert table.notes[0].startswith("Line 1 is above the names of the columns, and no row:")


def test_no_title_is_made_of_names_and_rows():
    for data in (b",text\n0,a b\n1,c d\n", b"text,\nlong,a\nlonger,a\n", b"id,text\n,x\n,y\n"):
        table = read_table(data)
        assert (table.rows[0][0], len(table.rows)) == (2, 2)


def test_a_row_taken_for_names_is_reported():
    table = read_table(b"My order is late,billing\nA bill is wrong,billing\nA box came,shipping\n")
    [note] = table.notes
    assert note.startswith(
        "Line 1 is taken for the names of the columns, and column 2 has its name, billing"
    )


def zipped(files):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return packed.getvalue()


GOOD = '{"text":"a b","y":"x"}\n{"text":"c d","y":"z"}\n'
TABLE = b"text,y\na b,x\nc d,z\n"


@pytest.mark.parametrize(
    ("name", "data", "told"),
    [
        ("cut.csv", "text,y\na b,x\nc d,z\n".encode("utf-16-le")[:-1], "is not text"),
        ("nuls.csv", TABLE + b"\0" * 99, "is not text"),
        ("a.jsonl", b"# made on 1 March\n" + GOOD.encode(), "Line 1: It is no JSON at character 1"),
        ("a.jsonl", b"{bad\n" + GOOD.encode(), "Line 1: It is no JSON at character 2"),
        ("a.ndjson", b"text,y\na b,x\n", "No row can be read. Line 1: It is no JSON"),
        ("a.zip", zipped({"a.csv": TABLE, "b.xlsx": b"", "__MACOSX/._a": b""}), "not read: b.xlsx"),
        ("a.csv", TABLE + rb"e f,\N", "line 4: It has no label; fill y."),
        ("a.csv", b'text,y\n"no \\"way\\", I say",z\na b,z\nc d,x\n', "A backslash"),
        ("a.csv", b"text,n,y\na b,x\ne f,3,x\nc d,2,z\n", "add the separators that are missing"),
        ("a.zip", zipped({"a.pdf": b"%PDF"}), "a.zip has no .csv"),
        ("a.csv", b"text,n,y\na b,1,50,x\ne f,3,x\nc d,2,z\n", "Line 2: It has 4 cells"),
        ("a.csv.gz", b"\x1f\x8b", "is compressed; unpack it"),
        ("a.csv", b"text,y\n\xed\xa0\xbd\xed\xb8\x80 a,x\nc d,z\n", "--encoding"),
    ],
)
def test_inexact_cells_are_reported(tmp_path, name, data, told):
    (tmp_path / name).write_bytes(data)
    assert told.lower() in reasons_of(tmp_path / name).lower()


def reasons_of(path):
    """A user's report on a file; its last row is there, or nothing is."""
    try:
        table = read_table(path)
    except ValueError as error:
        return str(error)
    made = convert(table, Mapping(("text",), (label_of(table, "y"),)))
    assert json.loads(made.lines[-1])["context"] == "c d"
    return " ".join([*table.notes, *(row.sentence for row in made.refused)])


def test_columns_of_bytes_and_rows_without_names_are_reported():
    file = io.BytesIO()
    columns = {"picture": [b"\xff", b"\x00"], "text": ["a b", "c d"], "raw": [b"x", b"y"]}
    pq.write_table(pa.table(columns), file)
    table = read_table(file.getvalue())
    assert table.columns == ("text", "raw")
    assert table.notes == ["The column picture has bytes that are not text; it is left out."]
    assert read_table(b",,\na,b,c\nx,y,z\n").notes == [
        "Line 1 is empty; the names of the columns are below it."
    ]
    with pytest.raises(ValueError, match=r"Line 2: It is no JSON at character 1"):
        read_table(b'[{"text": "a"},\n {"text": "b"}, ]')
    label = label_of(read_table(b"text,y\na,0\nb,1\nc,-1\n"), "y")
    assert (label.outcomes, "--no-label -1" in label.note) == (("-1", "0", "1"), True)


def test_half_a_character_costs_its_row_alone():
    lines = [json.dumps({"text": f"message {n}", "team": "ab"[n % 2]}) for n in range(6)]
    lines[3] = '{"text": "cut \\ud83d", "team": "b"}'
    _, made, rows = converted("\n".join(lines).encode())
    assert len(rows) == 5
    reason = "text has a lone UTF-16 surrogate; send whole characters."
    assert [(row.line, row.reason) for row in made.refused] == [(4, reason)]
    table = Table(("text", "team"), [(1, ["cut \ud83d", "a"]), (2, ["x", "b"])])
    made = convert(table, guess_mapping(table))
    assert [row.reason for row in made.refused] == [reason]


def test_an_object_with_a_name_twice_loses_no_value():
    _, made, _ = converted(b'{"t":"a a","y":1}\n{"t":"b b","y":1,"y":2}\n{"t":"c c","y":2}\n')
    assert [(row.line, "'y' is there twice" in row.reason) for row in made.refused] == [(2, True)]


LISTS = [["billing"], ["shipping"], ["billing", "shipping"], [], ["other"]]


@pytest.mark.parametrize("as_text", [False, True])
def test_lists_of_labels(as_text):
    def rows_of(lists):
        cells = map(json.dumps, lists) if as_text else lists
        rows = [{"text": f"a message {n}", "label": cell} for n, cell in enumerate(cells)]
        return json.dumps(rows).encode()

    _, made, rows = converted(rows_of([LISTS[0], LISTS[1], LISTS[3]] * 4))
    assert [row["targets"]["label"] for row in rows] == ["billing", "shipping"] * 4
    assert len(made.refused) == 4
    _, _, rows = converted(rows_of(LISTS * 3))
    assert rows[2]["targets"] == {
        "label_billing": "yes",
        "label_other": "no",
        "label_shipping": "yes",
    }
    assert rows[0]["decisions"][0] == {
        "id": "label_billing",
        "kind": "binary",
        "question": 'Does the label "billing" fit?',
    }


@pytest.mark.parametrize(
    "names",
    [
        "ham\nspam\nother\n",
        "0: ham\n1: spam\n2: other\n",
        '["ham", "spam", "other"]',
        '{"id2label": {"0": "ham", "1": "spam", "2": "other"}}',
        '{"ham": 0, "spam": 1, "other": 2}',
    ],
)
def test_numbers_are_called_by_the_names_of_a_file(tmp_path, names):
    (tmp_path / "names").write_text(names)
    rows = "".join(f"message {n},{value}\n" for n, value in enumerate([0, 1, -1, 1, 0, 7]))
    table = read_table(f"text,label\n{rows}".encode())
    label = name_values(table, label_of(table, "label"), read_names(tmp_path / "names"))
    assert (label.kind, label.question) == ("single", "Which label fits?")
    assert label.outcomes == ("ham", "spam", "other")
    made = convert(table, Mapping(("text",), (label,)))
    targets = [json.loads(line)["targets"]["label"] for line in made.lines]
    assert targets == ["ham", "spam", "spam", "ham"]
    assert [row.line for row in made.refused] == [4, 7]
    lists = Table(("text", "y"), [(1, ["a", [0, 2]]), (2, ["b", [1]])])
    several = name_values(lists, label_of(lists, "y"), read_names(tmp_path / "names"))
    assert several.targets([0, 2]) == {"y_ham": "yes", "y_spam": "no", "y_other": "yes"}


def test_a_line_end_at_the_end_of_a_block_is_kept(tmp_path):
    size = 1 << 20
    for n_before in (size - 1, size, (1 << 13) - 1):
        start = b'text\n"'
        cell = b"z" * (n_before - len(start)) + b"\r\nmore"
        (tmp_path / "a.csv").write_bytes(start + cell + b'"\nlast\n')
        [batch] = RowFile(tmp_path / "a.csv").batches(["text"], 10)
        assert batch.contexts == [cell.decode(), "last"]


RAW = [
    '{"id":"A-1","text":"x","n":1,"f":1.10}',
    '{"id":9223372036854775809,"text":"y","n":2,"f":1e400,"o":{"a":[1]}}',
    '{"id":4,"text":"z","n":null,"f":2}',
]


def test_columns_beside_the_context_pass_through_as_they_are(tmp_path):
    source = tmp_path / "a.jsonl"
    source.write_text("\n".join(RAW))
    frames = [batch.rows for batch in RowFile(source).batches(["text"], 2)]
    rows = pl.concat(frames, how="diagonal").with_columns(pl.lit("a").alias("top"))
    parts = [frame.with_columns(pl.lit("a").alias("top")) for frame in frames]
    raw = ["id", "text", "n", "f", "o"]
    write_rows(rows.lazy(), tmp_path / "b.jsonl", raw, parts)
    lines = (tmp_path / "b.jsonl").read_text().splitlines()
    assert lines == [f'{line[:-1]},"top":"a"}}' for line in RAW]
    write_rows(rows.lazy(), tmp_path / "b.csv", raw)
    with (tmp_path / "b.csv").open(newline="") as file:
        assert list(csv.reader(file))[1:] == [
            ["A-1", "x", "1", "1.10", "", "a"],
            ["9223372036854775809", "y", "2", "1e400", '{"a":[1]}', "a"],
            ["4", "z", "", "2", "", "a"],
        ]
    write_rows(rows.lazy(), tmp_path / "b.parquet", raw)
    frame = pl.read_parquet(tmp_path / "b.parquet")
    assert frame["id"].to_list() == ["A-1", "9223372036854775809", "4"]
    assert frame["n"].to_list() == [1, 2, None]


def test_rows_that_cannot_be_read_are_left_out_where_they_are_kept(tmp_path):
    source = tmp_path / "a.csv"
    source.write_bytes(b'text,n\na,1\n"b,2\nc,3\nd\n')
    rows = RowFile(source)
    assert [batch.contexts for batch in rows.batches(["text"], 10)] == [["a", "c"]]
    assert [row.line for row in rows.refused] == [3, 5]


def test_contexts_are_stored_as_they_are():
    text = "  two\r\nlines\r and an end "
    table = Table(("text", "y"), [(1, [text, "a"]), (2, ["x", "b"])])
    made = convert(table, Mapping(("text",), guess_mapping(table).labels))
    assert json.loads(made.lines[0])["context"] == text


def test_the_encoding_of_plain_text_is_utf_8():
    assert find_encoding(Source("x", b"a,b\n")).name == "UTF-8"
    assert find_encoding(Source("x", b"text,team\nCaf\xe9,x\n")).name == "Windows-1252"


ROW = {
    "context": "Où est ma facture ?",
    "decisions": [{"id": "t", "question": "Which?", "outcomes": ["a", "b"]}],
    "targets": {"t": "a"},
}


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-le", "cp1252"])
def test_rows_with_decisions_are_read_in_every_encoding(tmp_path, codec):
    line = json.dumps(ROW, ensure_ascii=False)
    (tmp_path / "a.jsonl").write_bytes(f"\n{line}\r\nno row\n{line}".encode(codec))
    made = read_lines(Source("a.jsonl", tmp_path / "a.jsonl"))
    assert [json.loads(row) if row.strip() else None for row in made.lines] == [
        None,
        ROW,
        None,
        ROW,
    ]
    assert made.refused[0].sentence.startswith("Line 3: It is no JSON at character 1")
    assert codec != "utf-16" or are_rows((tmp_path / "a.jsonl").read_bytes())


def test_imported_rows_can_be_answered(tmp_path):
    (tmp_path / "a.json").write_text(f"[{','.join(RAW[:1] + RAW[2:])}]")
    [batch] = RowFile(tmp_path / "a.json").batches(["text"], 10)
    assert batch.contexts == ["x", "z"]
    assert batch.rows["id"].to_list() == ['"A-1"', "4"]
    xlsxwriter = pytest.importorskip("xlsxwriter")
    pytest.importorskip("fastexcel", reason="needs the excel extra")
    with xlsxwriter.Workbook(tmp_path / "a.xlsx") as book:
        book.add_worksheet("About").write_row(0, 0, ("of", "rows"))
        sheet = book.add_worksheet("Rows")
        for row, cells in enumerate([("text", "id"), ("x", "007"), ("y", None)]):
            sheet.write_row(row, 0, cells)
    [batch] = RowFile(tmp_path / "a.xlsx", Options(sheet="Rows")).batches(["text"], 10)
    assert (batch.contexts, batch.rows["id"].to_list()) == (["x", "y"], ["007", None])
    with pytest.raises(ValueError, match="no known ending"):
        RowFile(tmp_path / "a.gz")


def test_frames_go_by_the_same_rules():
    frame = pd.DataFrame([["a", "b"]], columns=["text", "text"])
    with pytest.raises(ValueError, match="Two columns are named 'text'"):
        decide_rows(frame, Questions(ROW["decisions"]))
    with pytest.raises(ValueError, match="Two columns of the frame are named 'text'"):
        next(pieces_of(frame, FrameColumns(context="text", decisions=ROW["decisions"])))


def test_packed_lines_are_those_that_were_added():
    lines, packed = [b"%d\n" % n for n in range(9_000)], PackedLines()
    for line in lines:
        packed.append(line)
    assert (list(packed), len(packed), packed.n_bytes) == (lines, 9_000, len(b"".join(lines)))
    assert (packed[4_096], packed[-1]) == (lines[4_096], lines[-1])
    assert packed[4_095:4_098] == lines[4_095:4_098]
