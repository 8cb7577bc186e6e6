"""How a text file is encoded: found from all of its bytes, or refused.

A file that is UTF-8 throughout is UTF-8. Else every encoding that can decode the whole file is scored
by the share of its characters beyond ASCII that are frequent in the languages it is used for: bytes of
one encoding that are read as another make rare characters. Where two are as likely, the file is
refused and the encoding is asked for; no character is ever replaced.
"""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
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
    "Shift_JIS": "cp932",
    "EUC-JP": "euc_jp",
    "GB18030": "gb18030",
    "Big5": "cp950",
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
_CHUNK_BYTES = 1 << 20
#: Bytes of lines with other characters than ASCII that are scored.
_SAMPLE_BYTES = 1 << 18
#: Of characters of zero, more than this share is text of two bytes a character.
_MOST_NULS = 0.1
#: Frequent characters: the least share, and how far the next encoding must be below the best.
_LEAST_SHARE, _NEXT_SHARE = 0.25, 0.6
#: Frequent characters that are evidence enough in a script of thousands.
_LEAST_FREQUENT = 3
#: Characters that no text file has.
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x19\x1c-\x1f\x7f\x80-\x9f]")
#: Marks that say little of the language: the same bytes mean them in several encodings.
_NEUTRAL = frozenset("\u3000、。·…—～‖“”‘’《》「」『』【】（），：；！？.%￥")  # noqa: RUF001

_KANA = "".join(map(chr, (*range(0x3041, 0x3094), *range(0x30A1, 0x30F7)))) + "ー"
_JAPANESE = _KANA + (
    "日一国会人年大十二本中長出三同時政事自行社見月分議後前民生連五発間対上部東者党地合市業内相方四定今回新場金員九入選立開手米力学問高代明実円関決子動京全目表"
    "経通外最言氏現理調体化田当八六約主題下首意法不来作性要用制度務強気小七成期公野協取都統以機平総加山思家話世受区領多県続進正安設保改数記院女初北午指権心界支"
    "第産結百派点教報済書府活原先共得解名交資予向際査委文反元重近考画認海参売利組知案道信策集在件団別物側任引使求所次水半品注請求荷物届届返金配送支払問合客様"
)
_CHINESE = (
    "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道行所然家种事成方多经么去法学如都同现当没动面起看定"
    "天分还进好小部其些主样理心她本前开但因只从想实日军者意无力它与长把机十民第公此已工使情明性知全三又关点正业外将两高间由问很最重并物手应战向头文体政美相见被"
    "利什二等产或新己制身果加西斯月话合回特代内信表化老给世位次度门任常先海通教儿原东声提立及比员解水名真论处走义各入几口认条平系气题活尔更别打女变四神总何电数"
    "安少报才结反受目太量再感建务做接必场件计管期市直德资命山金指克许统区保至队形社便空决治展马科司五基眼书非则听白请钱退货订单送付款客服快递收买卖商品"
)
_TRADITIONAL = (
    "的一是不了在人有我他這個們中來上大為和國地到以說時要就出會可也你對生能而子那得於著下自之年過發後作里裡用道行所然家種事成方多經麼去法學如都同現當沒動面起看定"
    "天分還進好小部其些主樣理心她本前開但因只從想實日軍者意無力它與長把機十民第公此已工使情明性知全三又關點正業外將兩高間由問很最重並物手應戰向頭文體政美相見被"
    "利什二等產或新己制身果加西斯月話合回特代內信表化老給世位次度門任常先海通教兒原東聲提立及比員解水名真論處走義各入幾口認條平系氣題活爾更別打女變四神總何電數"
    "安少報才結反受目太量再感建務做接必場件計管期市直德資命山金指克許統區保至隊形社便空決治展馬科司五基眼書非則聽白請錢退貨訂單送付款客服快遞收買賣商品"
)
_KOREAN = (
    "이다는에의가을한하고은로도를사지기어인있나대아자해그리시서것정수라일만게들상제전부주장보원스으안우동소조여국경공구유요면신비화적내세연관선진당성트드생방회오었무"
    "과발계출개등중건결문위모용분미음물마간니했습까않말때객송배달환불합겠입금두번님답변료데된되됩할함합"
)
#: Frequent characters by encoding; of the Windows pages those that their languages write.
_FREQUENT = {
    "Shift_JIS": frozenset(_JAPANESE),
    "EUC-JP": frozenset(_JAPANESE),
    "GB18030": frozenset(_CHINESE),
    "Big5": frozenset(_TRADITIONAL),
    "EUC-KR": frozenset(_KOREAN),
    "Windows-1252": frozenset("àâäåæáãçéèêëíìîïñóòôöõøœúùûüýÿßÀÂÄÅÆÁÃÇÉÈÊËÍÎÏÑÓÔÖÕØŒÚÙÛÜ€£«»°–’“”„…‘•¿¡§©®\xa0º"),  # noqa: RUF001
    "Windows-1250": frozenset("áäčďéěíľĺňóôöőřŕšťúůüűýžąćęłńśźżÁÄČĎÉĚÍĽŇÓÔÖŐŘŠŤÚŮÜŰÝŽĄĆĘŁŃŚŹŻßçëâăîşţ€„”“–’…°§\xa0"),  # noqa: RUF001
    "Windows-1251": frozenset("оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфОЕАИНТСРВЛКМДПУЯГЗБЧХЖШЮЦЩЭФіїєёґ«»–—№…"),  # noqa: RUF001
    "Windows-1253": frozenset("αοιετσνηυρπκμλωδγχθφβξζψςάέήίόύώϊΑΟΙΕΤΣΝΗΥΡΠΚΜΛΩΔΓΧΘΦΒΞΖΨ«»–’"),  # noqa: RUF001
    "Windows-1254": frozenset("ığşİöçüĞŞÖÇÜâîû€“”’–…"),  # noqa: RUF001
}  # fmt: skip
#: Pages of one byte a character: of those that score alike, the first is taken.
_LATIN = ("Windows-1252", "Windows-1250", "Windows-1254")
_PAGES = (*_LATIN, "Windows-1251", "Windows-1253")
_OTHERS = re.compile(r"[^\x00-\x7f]")
#: Letters that stand together, or a run of other characters.
_WORDS = re.compile(r"[^\W\d_]+|[^\w\s\x00-\x7f]+")


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
    """Return how a file is encoded.

    Parameters
    ----------
    source : Source
        The file.
    given : str, optional
        The encoding, where a user knows it.

    Raises
    ------
    ValueError
        When it is no text, or could be in several encodings.
    """
    if given is not None:
        return _given_encoding(source, given)
    start = next(source.chunks(), b"")
    for mark, name in _MARKS.items():
        if start.startswith(mark):
            return Encoding(name, CODECS[name])
    wide = _wide_encoding(source)
    if wide is not None:
        return wide
    n_wrong, n_right = _count_utf_8(source)
    # Some wrong bytes among more right ones: those rows are refused, and no page is guessed.
    if n_right >= n_wrong:
        return Encoding("UTF-8", "utf-8-sig")
    return _legacy_encoding(source)


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
    if n_bytes % 2 or n_even + n_odd <= _MOST_NULS * n_bytes:
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
    scores: dict[str, tuple[float, int]] = {}
    texts: dict[str, str] = {}
    for name in _FREQUENT:
        if _first_wrong(source, CODECS[name]) is None:
            text = sample.decode(CODECS[name], errors="ignore")
            if not _CONTROLS.search(text):
                texts[name], scores[name] = text, _score(name, text)
    best = max(scores, key=lambda name: scores[name][0], default=None)
    if best in _PAGES:
        # A few accents look alike in the pages: then it is the one of Western Europe.
        best = next(name for name in _PAGES if scores.get(name, (-1,))[0] >= scores[best][0])
    if best is None:
        raise ValueError(
            f"{source.name} is not text that can be read; save it as CSV in UTF-8, or name its "
            "encoding (--encoding)."
        )
    share, n_frequent = scores[best]
    others = [
        name
        for name in scores
        if texts[name] != texts[best] and not (best in _PAGES and name in _PAGES)
    ]
    rival = max(others, key=lambda name: scores[name][0], default=None)
    is_plain = best in _LATIN and (rival is None or scores[rival][1] == 0)
    least = 1 if is_plain else _LEAST_FREQUENT
    if (
        share < _LEAST_SHARE
        or n_frequent < least
        or (rival is not None and scores[rival][0] > share * _NEXT_SHARE)
    ):
        likely = sorted(scores, key=lambda name: -scores[name][0])[:3]
        raise ValueError(
            f"The encoding of {source.name} is not certain: it may be {' or '.join(likely)}. Save it "
            "in UTF-8, or name its encoding (--encoding)."
        )
    return Encoding(best, CODECS[best])


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


def _score(name: str, text: str) -> tuple[float, int]:
    """Return the share of characters beyond ASCII that are frequent, and how many different ones."""
    frequent = _FREQUENT[name]
    others = [sign for sign in _OTHERS.findall(text) if sign not in _NEUTRAL]
    if not others:
        return 0.0, 0
    if name in _PAGES:
        words = [word for word in _WORDS.findall(text) if not word.isascii()]
        matches = [
            sign
            for word in words
            if _is_word(word, frequent, is_latin=name in _LATIN)
            for sign in word
            if not sign.isascii()
        ]
    else:
        matches = [sign for sign in others if sign in frequent]
    return len(matches) / len(others), len(set(matches))


def _is_word(word: str, frequent: frozenset[str], *, is_latin: bool) -> bool:
    """Return whether letters stand together as a language writes them; other bytes mix their cases."""
    signs = [sign for sign in word if not sign.isascii()]
    if not frequent.issuperset(signs):
        return False
    if not word.isalpha():
        return len(word) == 1
    if len(signs) > (len(word) + 1) // 2 if is_latin else len(signs) < len(word):
        return False
    return word[1:].islower() or len(word) == 1 or word.isupper()
