"""How a text file is encoded: found from all of its bytes, or refused.

A file that is UTF-8 throughout is UTF-8. Else chardet ranks the encodings that can decode the whole
file. Where two are as likely, or none is likely enough, the file is refused and the encoding is asked
for; no character is ever replaced.
"""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

#: Names that a user gives, and the codecs that read them; where several read one, the widest.
CODECS = {
    "UTF-8": "utf-8-sig",
    "UTF-16": "utf-16",
    "UTF-16LE": "utf-16-le",
    "UTF-16BE": "utf-16-be",
    "UTF-32": "utf-32",
    "Windows-1252": "cp1252",
    "Windows-1250": "cp1250",
    "Windows-1251": "cp1251",
    "Windows-1253": "cp1253",
    "Windows-1254": "cp1254",
    "Windows-1255": "cp1255",
    "Windows-1256": "cp1256",
    "Windows-1257": "cp1257",
    "Windows-874": "cp874",
    "KOI8-R": "koi8-r",
    "ISO-8859-2": "iso8859-2",
    "ISO-8859-15": "iso8859-15",
    "MacRoman": "mac_roman",
    "Shift_JIS": "cp932",
    "EUC-JP": "euc_jp",
    "ISO-2022-JP": "iso2022_jp",
    "GB18030": "gb18030",
    "Big5": "cp950",
    "Big5-HKSCS": "big5hkscs",
    "EUC-KR": "cp949",
}
#: The longer ones first: one begins as another does.
_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF8: "UTF-8",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
#: What begins Japanese in seven bits.
_ESCAPE = b"\x1b$B"
_CHUNK_BYTES = 1 << 20
#: Bytes of lines with other characters than ASCII that are looked at.
_SAMPLE_BYTES = 1 << 17
#: Of characters of zero, more than this share is text of two bytes a character.
_MOST_NULS = 0.1
#: How likely an encoding must be that is not of Latin letters, and how far the next one below it.
_LEAST_LIKELY, _NEXT_SHARE = 0.08, 0.6
#: Of Latin letters, how much likelier Windows-1252 is beforehand, and how far it must be below another.
_USUAL, _NEXT_LATIN = 1.35, 0.8
#: Characters that no text file has, and signs and capitals that no language writes where they are.
_CONTROLS = re.compile(
    r"[\x00-\x08\x0e-\x19\x1c-\x1f\x7f\x80-\x9f¤]|[^\W\d_][‚ƒ„†‡ˆ‰‹¦¬¯±¢£¥¼½¾÷•§]+[^\W\d_]"  # noqa: RUF001
    r"|[†‡‰¬÷][^\W\d_]|\b[ÐÛŰŪ]\b"
)
#: Encodings of Latin letters, of one byte a character, and of several.
_LATIN = (
    *("Windows-1252", "Windows-1250", "Windows-1254", "Windows-1257"),
    *("ISO-8859-15", "ISO-8859-2", "MacRoman"),
)
_PAGES = (
    *(*_LATIN, "Windows-1251", "Windows-1253", "Windows-1255", "Windows-1256"),
    *("Windows-874", "KOI8-R"),
)
_WIDE = ("Shift_JIS", "EUC-JP", "GB18030", "Big5", "Big5-HKSCS", "EUC-KR")
#: What chardet knows of EUC-JP.
_WIDEST_EUC = "euc_jis_2004"
#: Katakana of half a width alone, which chardet does not know: most of a text, and how likely.
_MOST_OF, _LIKELY_KANA = 0.95, 0.06
_OTHERS = re.compile(r"[^\x00-\x7f]")
#: A letter beside a capital at the start of a word that goes on in small letters.
_BESIDE_CAPITAL = re.compile(r"\b(?:[A-Z]([^\W\d_a-zA-Z])|([^\W\d_a-zA-Z])[A-Z])[a-z]")
#: Plain text between others, of which the first signs may be parts of characters.
_LONG_ASCII = re.compile(rb"([\x00-\x7f]{3})[\x00-\x7f]{4,}([\x00-\x7f]{3})")
#: Letters of two scripts side by side.
_MIXED = re.compile(r"[A-Za-z][^\W\d_\x00-\x7f]|[^\W\d_\x00-\x7f][A-Za-z]")
_SIDE_BY_SIDE = re.compile(r"[^\x00-\x7f]{2}")
_HALF_KANA = re.compile("[\uff61-\uff9f]{2,}")
_MAC = "MacRoman"
_LETTER = r"[^\W\d_]"
_ENGLISH = r"\b(?:the|and|you|your|with|this|that|are|my|it|not)\b"
#: Signs of Windows-1252 where none are written, and those that only English has there: such a file may
#: be of an old Mac, which writes letters with accents so.
_MISPLACED = re.compile(
    rf"{_LETTER}[ˆ˜‡‰]|{_LETTER}[‘“”‹›•™]{_LETTER}|[Œœ](?![uinEUID])|[ƒ€]{_LETTER}|Ÿ"  # noqa: RUF001
    r"|\b[a-z]\w*[šž]|\bÑ\b"
)
_NOT_IN_ENGLISH = re.compile(
    rf"{_LETTER}[–—](?:{_LETTER}|\s)|[šž]|\b[ŠŽ][a-z]|(?<!\w)…{_LETTER}"  # noqa: RUF001
    rf"|\b(?!(?:\w*qu|[cdjlmnst]|\w*ll|gl|ch|un|\w{{2,}}[dv]|quest|mezz|sant|o)’){_LETTER}+’(?!(?:[smtd]|re|ve|ll)\b){_LETTER}",  # noqa: RUF001
    re.IGNORECASE,
)
#: Signs of a Mac that are letters of Windows.
_FOREIGN = re.compile(rf"{_LETTER}[·¸˘˙˚¯˝˛ˇˆ˜‰ªº∂∑∏π∫Ω√≈∆◊ﬂﬁı]")  # noqa: RUF001
#: Fewer letters of other pages say nothing.
_FEW = 6
#: Quotation marks, and those that each comes with.
_ALONE = (
    (f"{_LETTER}[‘“]", "[‚„]"),  # noqa: RUF001
    (f"[‚„]{_LETTER}", "[‘“”’]"),  # noqa: RUF001
    (f"{_LETTER}‹", "›"),  # noqa: RUF001
    (f"{_LETTER}›", "‹"),  # noqa: RUF001
    (rf"(?<!\w)”{_LETTER}", r"[\w.,!?]”"),
    (rf"{_LETTER}{{2}}[^\W\d_sS]’(?!{_LETTER})", f"(?i)[‘‚]|{_ENGLISH}"),  # noqa: RUF001
)


@dataclass(frozen=True, slots=True)
class Source:
    """A file, or the bytes of one, that is read as often as it is needed."""

    name: str
    content: Path | bytes

    def open(self) -> BinaryIO:
        """Return the file, opened at its start."""
        if isinstance(self.content, bytes):
            return io.BytesIO(self.content)
        return self.content.open("rb")

    def chunks(self) -> Iterator[bytes]:
        """Yield the bytes piece by piece."""
        with self.open() as file:
            while chunk := file.read(_CHUNK_BYTES):
                yield chunk


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a file is encoded: as a user calls it, and the codec."""

    name: str
    codec: str

    def open(self, source: Source) -> io.TextIOWrapper:
        """Return the text of a file, with its line ends as they are.

        A byte of UTF-8 that is wrong becomes a lone surrogate, as does half a character of UTF-16:
        a row that has one is refused, and written elsewhere as it was.
        """
        errors = "surrogatepass" if self.codec.startswith("utf-16") else "surrogateescape"
        return io.TextIOWrapper(source.open(), self.codec, errors=errors, newline="")


def find_encoding(source: Source, given: str | None = None) -> Encoding:
    """Return how a file is encoded; ``ValueError`` when it is no text, or could be several ways."""
    if given is not None:
        return _given_encoding(source, given)
    start = next(source.chunks(), b"")
    marked = marked_encoding(start)
    if marked is not None:
        return marked
    if _ESCAPE in start and _first_wrong(source, CODECS["ISO-2022-JP"]) is None:
        return Encoding("ISO-2022-JP", CODECS["ISO-2022-JP"])
    wide = _wide_encoding(source)
    if wide is not None:
        return wide
    n_wrong, n_right = _count_utf_8(source)
    # Some wrong bytes among more right ones: those rows are refused, and no page is guessed.
    if n_right >= n_wrong:
        return Encoding("UTF-8", "utf-8-sig")
    return _legacy_encoding(source)


def marked_encoding(start: bytes) -> Encoding | None:
    """Return the encoding whose byte-order mark a text begins with; ``None`` without a mark."""
    name = next((name for mark, name in _MARKS.items() if start.startswith(mark)), None)
    return None if name is None else Encoding(name, CODECS[name])


def _given_encoding(source: Source, given: str) -> Encoding:
    by_name = {_plain(name): name for name in CODECS}
    name = by_name.get(_plain(given))
    try:
        codec = CODECS[name] if name is not None else codecs.lookup(given).name
        b"".decode(codec)
    except (LookupError, TypeError) as error:
        raise ValueError(
            f"{given!r} is not an encoding; give one of {', '.join(CODECS)}."
        ) from error
    encoding = Encoding(name or given, codec)
    if not codec.startswith("utf-") and (place := _first_wrong(source, codec)) is not None:
        raise ValueError(
            f"{source.name} is not {encoding.name}: byte {place} cannot be read. Give another encoding."
        )
    return encoding


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower()).removesuffix("sig")


def _wide_encoding(source: Source) -> Encoding | None:
    """Return UTF-16 without a mark: every second byte of plain letters and line ends is zero."""
    n_bytes, n_even, n_odd = 0, 0, 0
    for chunk in source.chunks():
        n_even += chunk[0::2].count(0)
        n_odd += chunk[1::2].count(0)
        n_bytes += len(chunk)
    if n_even + n_odd <= _MOST_NULS * n_bytes:
        return None
    name = "UTF-16LE" if n_odd > n_even else "UTF-16BE"
    start = next(source.chunks(), b"").decode(CODECS[name], errors="ignore")
    if _first_wrong(source, CODECS[name]) is not None or _CONTROLS.search(start):
        raise ValueError(f"{source.name} is not text that can be read; save it as CSV in UTF-8.")
    return Encoding(name, CODECS[name])


def _count_utf_8(source: Source) -> tuple[int, int]:
    """Return how many bytes are no UTF-8, and how many characters of several bytes are right."""
    decode = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode
    n_wrong = n_right = 0
    for chunk in source.chunks():
        text = decode(chunk)
        if text.isascii():
            continue
        n_bad = len(re.findall("[\udc80-\udcff]", text))
        n_wrong += n_bad
        n_right += len(_OTHERS.findall(text)) - n_bad
    n_wrong += len(decode(b"", True))
    return n_wrong, n_right


def _first_wrong(source: Source, codec: str) -> int | None:
    """Return the first byte that a codec cannot read, counted from 1; ``None`` where it reads all."""
    decoder = codecs.getincrementaldecoder(codec)("strict")
    n_before = n_left = 0
    try:
        for chunk in source.chunks():
            n_left = len(decoder.getstate()[0])
            decoder.decode(chunk)
            n_before += len(chunk)
        n_left = len(decoder.getstate()[0])
        decoder.decode(b"", True)
    except UnicodeDecodeError as error:
        return n_before - n_left + error.start + 1
    return None


def _legacy_encoding(source: Source) -> Encoding:
    sample = _sample(source)
    names = [name for name in (*_PAGES, *_WIDE) if _first_wrong(source, CODECS[name]) is None]
    texts = {name: sample.decode(CODECS[name], errors="ignore") for name in names}
    likely = _likely(sample, texts)
    best = next(iter(likely), None)
    if best is None:
        raise ValueError(
            f"{source.name} is not text that can be read; save it as CSV in UTF-8, or name its "
            "encoding (--encoding)."
        )
    is_of_mac = _may_be_of_mac(best, texts)
    if is_of_mac or not (_is_written(texts[best]) and _is_certain(best, likely, texts, sample)):
        possible = dict.fromkeys((best, _LATIN[0], _MAC) if is_of_mac else likely)
        raise ValueError(
            f"The encoding of {source.name} is not certain: it may be {' or '.join([*possible][:3])}. "
            "Save it in UTF-8, or name its encoding (--encoding)."
        )
    return Encoding(best, CODECS[best])


def _likely(sample: bytes, texts: dict[str, str]) -> dict[str, float]:
    """Return how likely each encoding is that reads the file, the likeliest first."""
    import chardet  # noqa: PLC0415  most files are UTF-8

    by_codec = {codecs.lookup(CODECS[name]).name: name for name in (*_PAGES, *_WIDE)}
    by_codec[_WIDEST_EUC] = "EUC-JP"
    likely: dict[str, float] = {}
    kana = texts.get("Shift_JIS", "")
    # One alone is a letter with an accent of another encoding.
    n_kana = sum(map(len, _HALF_KANA.findall(kana)))
    if n_kana > _MOST_OF * len(_OTHERS.findall(kana)):
        likely["Shift_JIS"] = _LIKELY_KANA
    for each in chardet.detect_all(
        _LONG_ASCII.sub(rb"\1 \2", sample) if _share_paired(sample) > 0.5 else sample,
        ignore_threshold=True,
        max_bytes=_SAMPLE_BYTES,
        prefer_superset=False,
        compat_names=False,
        include_encodings=[codec for codec in by_codec if codec != "euc_jp"],
    ):
        name = by_codec.get(codecs.lookup(each["encoding"] or "ascii").name, "")
        if name == "Big5-HKSCS" and "Big5" in texts:
            name = "Big5"
        if name not in texts or (name == "MacRoman" and each["confidence"] < _LEAST_LIKELY):
            continue
        if name in _LATIN and not _is_written(texts[name]):
            continue
        n_mixed = 0 if name in _LATIN else len(_MIXED.findall(texts[name]))
        if name in _WIDE and _SIDE_BY_SIDE.search(texts[name]):
            n_mixed = 0  # names in Latin letters stand beside words
        if 10 * n_mixed <= len(_OTHERS.findall(texts[name])):
            usual = _USUAL if name == _LATIN[0] else 1.0
            likely[name] = max(each["confidence"] * usual, likely.get(name, 0.0))
    # Of those that are as likely the first is taken.
    names = [name for name in (*_PAGES, *_WIDE) if name in likely]
    return {name: likely[name] for name in sorted(names, key=lambda name: -likely[name])}


def _is_written(text: str) -> bool:
    """Return whether people write so: no controls, and no capitals within words."""
    n_breaks = sum(
        before.islower() and after.isupper() and not after.isascii()
        for before, after in pairwise(text)
    )
    n_breaks += sum(any(map(str.isupper, pair)) for pair in _BESIDE_CAPITAL.findall(text))
    return not _CONTROLS.search(text) and n_breaks <= len(_OTHERS.findall(text)) // 100


def _may_be_of_mac(best: str, texts: dict[str, str]) -> bool:
    """Return whether the few letters of a file are as well, or better, those of an old Mac."""
    text, of_mac = texts[best], texts.get(_MAC, "")
    if best not in _LATIN or best == _MAC or not _is_written(of_mac) or _FOREIGN.search(of_mac):
        return False
    if best != _LATIN[0]:
        return len(_OTHERS.findall(text)) < _FEW
    is_english = re.search(_ENGLISH, text, re.IGNORECASE) is not None
    return (
        _MISPLACED.search(text) is not None
        or (not is_english and _NOT_IN_ENGLISH.search(text) is not None)
        or any(re.search(mark, text) and not re.search(other, text) for mark, other in _ALONE)
    )


def _share_paired(sample: bytes) -> float:
    """Return the share of bytes beyond ASCII, or runs of them, that do not stand alone."""
    runs = re.findall(rb"[\x80-\xff]+", sample)
    return sum(len(run) > 1 for run in runs) / max(len(runs), 1)


def _is_certain(best: str, likely: dict[str, float], texts: dict[str, str], sample: bytes) -> bool:
    """Return whether no other encoding, of those that make another text, is nearly as likely."""
    others = [name for name in likely if texts[name] != texts[best]]
    if best in _LATIN:
        if _LATIN[0] in others and likely[_LATIN[0]] > _NEXT_LATIN * likely[best]:
            return False
        # Letters with accents stand apart; bytes beyond ASCII side by side are other characters.
        if 3 * _share_paired(sample) < 1 or likely[best] >= _LEAST_LIKELY:
            return True
        if not texts.keys().isdisjoint(_WIDE):
            return False
        others = [name for name in others if name not in _LATIN]
    elif best in _PAGES and likely[best] < _LEAST_LIKELY:
        return False
    return all(likely[name] <= likely[best] * _NEXT_SHARE for name in others)


def _sample(source: Source) -> bytes:
    """Return whole lines with other characters than ASCII, from anywhere in the file."""
    lines: list[bytes] = []
    n_bytes = 0
    with source.open() as file:
        for line in file:
            if not line.isascii():
                lines.append(line[:_SAMPLE_BYTES])
                n_bytes += len(lines[-1])
                if n_bytes >= _SAMPLE_BYTES:
                    break
    return b"".join(lines)
