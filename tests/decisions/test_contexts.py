"""The readable text of a context, and warnings beside an answer."""

from __future__ import annotations

import json
import time

import pytest

from steelyard.decisions.contexts import context_warnings, read_context
from steelyard.scoring.hashing import WordCounter

REPLY = "Please send it again."
HEADER = "On Tue, 3 May 2026 at 10:12, The Shop <help@shop.example> wrote:"
GERMAN = "Ich möchte bitte mein Geld zurück, die Ware ist kaputt."


@pytest.mark.parametrize(
    "text",
    [
        f"{REPLY}\n\n{HEADER}\n> We shipped it.\n> The Shop",
        f"{REPLY}\n\n{HEADER[:50]}\n{HEADER[50:]}\n> We shipped it.\n> The Shop",
        f"{HEADER}\n> We shipped it.\n> Did it come?\n{REPLY}",
        f"{REPLY}\n\n{HEADER}\nWe shipped it.",
        f"{REPLY}\n-----Original Message-----\nFrom: Shop\nWe shipped it.",
        f"{REPLY}\n\nFrom: Shop\nSent: Monday\nTo: me\nSubject: Yours\nWe shipped it.",
        f"> We shipped it.\n> Did it come?\n{REPLY}",
    ],
)
def test_quoted_mail_is_not_read(text) -> None:
    read = read_context(text)
    assert read.text == REPLY
    assert read.quoted == len(text) - len(REPLY)


@pytest.mark.parametrize(
    "text",
    [
        "He said:\n> be yourself\nIs that good advice?",  # one marked line may be anything
        f"fyi\n{HEADER}\n> Pay by Friday.\n> The Shop",  # all is in the quoted mail
        f"See this please.\n---- Forwarded message ----\n{HEADER}\n> Pay now.\n> The Shop",
        "On Tuesday we met, and John wrote: come again.",
        "From: Berlin\nI came by train and it was late.",
        "if a < b and b > c: return a",
        "Is <b> closed here?",
        '{"unclosed": "json',
        "",
    ],
)
def test_text_without_quotes_or_markup_is_read_as_it_is(text) -> None:
    read = read_context(text)
    assert (read.text, read.quoted, read.markup) == (text, 0, 0)


def test_markup_and_quotes_of_a_page_are_not_read() -> None:
    page = (
        "<html><head><style>p { color: red }</style></head><body><p>My <b>parcel</b> is\nlost</p>"
        "<div>Tom &amp; Ann</div><blockquote>We shipped it</blockquote></body></html>"
    )
    read = read_context(page)
    assert read.text == "My parcel is lost\nTom & Ann"
    assert read.markup == len(page) - len(read.text)


def test_each_string_of_a_context_that_is_json_is_read() -> None:
    context = {"n": 1.5, "mails": [{"body": "<p>Please <b>cancel</b> it</p>"}, {"body": GERMAN}]}
    read = read_context(json.dumps(context, ensure_ascii=False))
    context["mails"][0]["body"] = "Please cancel it"
    assert json.loads(read.text) == context
    assert read.language == "German"


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (GERMAN, "German"),
        ("Je voudrais annuler ma commande s'il vous plaît", "French"),
        ("我想退款 我的订单还没有到", "Chinese"),
        ("card got hit 2x for the same order last nite, pls sort it", None),
        ("Where is order 4411 for Müller, Hauptstraße 12, Berlin?", None),
        ("ok", None),
        ("12345 / 678", None),
        ("\x00\ud800 \x01", None),
    ],
)
def test_a_language_is_named_where_it_is_surely_another(text, language) -> None:
    pytest.importorskip("pycld2")
    assert read_context(text).language == language


@pytest.mark.parametrize(
    "text",
    [
        "\n" * 40_000,
        " " * 40_000 + "\nx",
        "From:\nTo:\n" * 4_000,
        "wrote:\n" * 6_000,
        "<p>" * 9_000,
        "On " * 9_000 + "\nwrote:\n> a",
        "> \n" * 9_000,
        "[" * 9_000,
        '{"a":' * 900 + "1" + "}" * 900,
    ],
    ids=range(9),
)
def test_hostile_texts_cost_no_more_than_their_length(text) -> None:
    started = time.thread_time()
    read_context(text)
    assert time.thread_time() - started < 1.0


def test_warnings_name_a_remedy() -> None:
    def codes(text: str) -> list[str]:
        return [one.code for one in context_warnings(read_context(text), WordCounter())]

    assert codes(REPLY) == []
    both = [f"<p>{REPLY}</p><br>", f"{REPLY}\n{HEADER}\n> Old.\n> Older."]
    assert codes(json.dumps(both)) == ["quoted_mail", "markup"]
    assert codes("word " * 513) == ["long_context"]
    [warning] = context_warnings(read_context("word " * 513), WordCounter())
    assert warning.message.endswith("measured on up to 512. Send the part that decides.")


def test_words_of_many_pieces_are_reported() -> None:
    class Pieces(WordCounter):
        def least(self, text: str) -> int:
            return len(text.split())

        def count(self, text: str) -> int:
            return 5 * self.least(text)

    found = context_warnings(read_context("x9 y8 z7 q6 w5 e4 r3 t2 u1"), Pieces())
    assert [one.code for one in found] == ["unknown_words"]
