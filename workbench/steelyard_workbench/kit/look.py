"""Plain HTML parts: cards, chips, bars, tables, buttons, and the beam of a measured change."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

from steelyard_workbench.kit.theme import (
    FOCUS,
    FONT,
    HEADING,
    SMALL,
    TEXT,
    TITLE,
    VERDICT,
    Status,
    outcome_colours,
)


def with_tokens(css: str) -> str:
    """Return a style sheet whose ``var(--name)`` of a colour is that of the theme.

    ``--c``, the colour of a part, and ``--card-…``, which a card sets, stay as they are.

    >>> with_tokens("a { color: var(--accent); }")
    'a { color: var(--mui-palette-look-accent); }'
    """
    return re.sub(r"var\(--(?!mui-|card-|c\b)", "var(--mui-palette-look-", css)


#: Of every link, and of buttons that look like one.
LINK_CSS = with_tokens("""
a, button.word { color: var(--accent); font-weight: 500; text-decoration: none; }
a:hover, button.word:hover { text-decoration: underline; }
""")
#: Of every button that is plain HTML: as those of panel-material-ui.
BUTTON_CSS = LINK_CSS + with_tokens(f"""
button {{
  font: 600 {TEXT}/1.5 {FONT}; min-height: 36px; padding: 2px 14px; border-radius: 6px; cursor: pointer;
  color: var(--ink); background: var(--surface); border: 1px solid var(--line-strong);
  overflow-wrap: anywhere;
}}
button:hover {{ background: var(--sunk); }}
button.filled {{ color: var(--accent-ink); background: var(--accent); border-color: var(--accent); }}
button.danger {{ color: var(--bad); border-color: currentColor; }}
button.text, button.word {{ color: var(--accent); background: none; border-color: transparent; }}
a, button.word {{
  display: inline-block; font: 500 {TEXT}/1.5 {FONT}; border: 0; padding: 2px 0; min-height: 24px;
  text-align: left; overflow-wrap: anywhere;
}}
button:disabled {{
  color: var(--muted); background: transparent; border-color: var(--line); cursor: default;
}}
a:focus-visible, button:focus-visible, summary:focus-visible, [tabindex]:focus-visible {{
  outline: 3px solid {FOCUS}; outline-offset: 2px;
}}
""")

#: Of tables: a card of lines, without a frame of its own within another card; and on a phone a card for
#: each row, with the names of its columns.
TABLE_CSS = with_tokens(f"""
table {{
  border-spacing: 0; width: 100%; font-size: {TEXT}; color: var(--ink); background: var(--surface);
  border: var(--card-line, 1px solid var(--line)); border-radius: 8px;
}}
th, td {{
  text-align: left; vertical-align: baseline; padding: 9px 16px; border-bottom: 1px solid var(--line);
  unicode-bidi: plaintext;
}}
tbody tr:last-child > * {{ border-bottom: 0; }}
tbody tr:hover > * {{ background: var(--sunk); }}
th:first-child, td:first-child {{ padding-left: var(--card-side, 16px); }}
thead th, tbody th {{ font-size: {SMALL}; font-weight: 600; color: var(--muted); }}
thead th::first-letter {{ text-transform: uppercase; }}
abbr {{ text-decoration: underline dotted; text-underline-offset: 3px; cursor: help; }}
.number {{ text-align: right; font-variant-numeric: tabular-nums; }}
.long {{ overflow-wrap: anywhere; }}
@media (max-width: 599px) {{
  table.cards {{ border: 0; background: none; }}
  table.cards td::first-letter {{ text-transform: uppercase; }}
  table.cards thead {{ position: absolute; clip-path: inset(50%); height: 1px; overflow: hidden; }}
  table.cards tr {{
    display: block; margin-bottom: 12px; padding: 8px 12px; background: var(--surface);
    border: 1px solid var(--line); border-radius: 8px;
  }}
  table.cards th, table.cards td {{
    display: block; text-align: left; border: 0; padding: 2px 0; overflow-wrap: anywhere;
  }}
  table.cards td:empty {{ display: none; }}
  table.cards td::before {{ content: attr(data-label) ": "; color: var(--muted); }}
}}
""")

#: Of chips, which are an outcome each and have its colour.
CHIP_CSS = with_tokens(f"""
.chip {{
  --c: var(--muted);
  display: inline-block; box-sizing: border-box; max-width: 100%; padding: 0 10px; border-radius: 12px;
  font-size: {SMALL}; font-weight: 600; line-height: 22px; white-space: nowrap; overflow: hidden;
  text-overflow: ellipsis; vertical-align: middle;
  color: color-mix(in srgb, var(--c) 65%, var(--ink));
  background: color-mix(in srgb, var(--c) 12%, transparent);
  border: 1px solid color-mix(in srgb, var(--c) 45%, transparent);
}}
""")

#: Of the contents of table cells: chips, pills and bars.
CELL_CSS = CHIP_CSS + with_tokens(f"""
.pill {{
  display: inline-block; padding: 0 10px; border-radius: 12px; font-size: {SMALL}; font-weight: 600;
  line-height: 24px; white-space: nowrap; color: var(--accent); background: var(--accent-tint);
}}
.pill.good {{ color: var(--good); background: var(--good-tint); }}
.pill.bad {{ color: var(--bad); background: var(--bad-tint); }}
.pill.unsure {{ color: var(--warn); background: var(--warn-tint); }}
.pill.brass {{ color: var(--brass); background: var(--brass-tint); }}
.bar {{ position: relative; height: 10px; border-radius: 5px; background: var(--sunk); }}
.bar i {{ display: block; height: 100%; border-radius: 5px; background: var(--c); }}
.bar b {{ position: absolute; top: -4px; width: 2px; height: 18px; background: var(--brass); }}
""")

#: Of cards, and of their contents.
CARD_CSS = CELL_CSS + with_tokens(f"""
:host {{ color: var(--ink); font: {TEXT}/1.5 {FONT}; }}
.card {{
  --card-line: 0; --card-side: 0;
  box-sizing: border-box; padding: 24px; overflow-wrap: anywhere; background: var(--surface);
  border: 1px solid var(--line); border-radius: 8px; box-shadow: 0 1px 3px rgba(27, 35, 48, 0.07);
}}
.row {{ display: flex; flex-wrap: wrap; gap: 12px 32px; align-items: center; }}
.row > .wide {{ flex: 1 1 320px; min-width: 0; }}
.pills {{ display: flex; flex-wrap: wrap; gap: 8px; align-items: center; }}
h2 {{ font-size: {HEADING}; font-weight: 700; line-height: 1.25; margin: 0 0 12px; }}
.row > h2 {{ margin: 0; }}
.lead {{ font-size: {HEADING}; }}
.note {{ font-size: {SMALL}; color: var(--muted); }}
.figure {{ font-size: {TITLE}; font-weight: 700; line-height: 1.3; margin-right: 6px; }}
.verdict {{ font-size: {VERDICT}; font-weight: 700; line-height: 1.1; letter-spacing: -0.02em; }}
.verdict small {{ font-size: {HEADING}; font-weight: 500; color: var(--muted); letter-spacing: 0; }}
.beam {{ position: relative; height: 60px; min-width: 200px; margin: 0 24px; font-size: {SMALL}; }}
.beam > * {{ position: absolute; transform: translateX(-50%); white-space: nowrap; }}
.beam .line {{ left: 0; right: 0; top: 28px; height: 4px; border-radius: 2px; transform: none;
  background: var(--line); }}
.beam .span {{ top: 24px; height: 12px; border-radius: 3px; transform: none;
  background: color-mix(in srgb, var(--c) 40%, transparent); }}
.beam .mark {{ top: 20px; width: 4px; height: 20px; border-radius: 2px; background: var(--c); }}
.beam .zero {{ top: 18px; width: 2px; height: 24px; background: var(--muted); }}
.beam .over {{ top: 0; color: var(--muted); font-weight: 600; }}
.beam .under {{ top: 42px; color: var(--muted); }}
.beam.level {{ height: 20px; margin: 0; }}
.beam.level > * {{ margin-top: -20px; }}
.beam .full {{ right: auto; background: var(--c); }}
.beam .act {{ top: 22px; width: 2px; height: 16px; background: var(--brass); }}
.beam .act + .over {{ color: var(--brass); }}
.weighed {{ display: flex; gap: 12px; align-items: center; }}
.weighed .beam {{ flex: 1; margin: 0; }}
@media (max-width: 599px) {{ .card {{ padding: 16px; }} .verdict {{ font-size: {TITLE}; }} }}
""")


class Drawn(str):
    """HTML, which a table shows as it is."""

    __slots__ = ()


def chip(outcome: str, outcomes: Iterable[str]) -> str:
    """Return an outcome as HTML, in its colour among ``outcomes``."""
    return coloured_chip(outcome, outcome_colours([*outcomes, outcome])[outcome])


def coloured_chip(text: str, colour: str) -> str:
    """Return a text on a chip of a colour as HTML."""
    return f'<span class="chip" dir="auto" style="--c:{colour}">{escape(text)}</span>'


def pill(text: str, status: Status | str = "") -> str:
    """Return a short statement as HTML, in the colour of its status."""
    return f'<span class="pill {status}">{escape(text)}</span>'


def bar(share: float, colour: str, threshold: float | None = None) -> str:
    """Return a share as HTML: a bar, with a mark where a threshold is."""
    mark = "" if threshold is None else f'<b style="left:{threshold:.1%}"></b>'
    return f'<div class="bar" style="--c:{colour}"><i style="width:{share:.1%}"></i>{mark}</div>'


def level(share: float, low: float, high: float) -> str:
    """Return a share with its interval as HTML: a beam from none to all."""
    label = f"{share * 100:.0f} %, between {low * 100:.0f} and {high * 100:.0f}"
    return with_tokens(
        f'<div class="beam level" role="img" aria-label="{label}" style="--c:var(--accent)">'
        f'<i class="line"></i><i class="span" style="left:{low:.1%};width:{high - low:.1%}"></i>'
        f'<i class="mark" style="left:{share:.1%}"></i></div>'
    )


def weighed(yes: float, colour: str, threshold: float | None = None) -> str:
    """Return the probability of yes as HTML: a beam from no to yes, with marks where it acts from."""
    label, marks, height = f"probability of yes {yes:.3f}", "", ' style="margin-top:-16px"'
    if threshold is not None:
        height = ""
        label += f", acts from {threshold:g} on either side"
        marks = "".join(
            f'<i class="act" style="left:{at:.1%}"></i>' for at in (1 - threshold, threshold)
        )
        marks += f'<span class="over" style="left:{threshold:.1%}">act from {threshold:.2f}</span>'
    return with_tokens(
        f'<div class="weighed"{height}><span>no</span><div class="beam" role="img" aria-label="{label}" '
        f'style="--c:{colour}"><i class="line"></i><i class="line full" style="width:{yes:.1%}"></i>{marks}'
        f'<i class="mark" style="left:{yes:.1%}"></i>'
        f'<span class="under" style="left:{min(max(yes, 0.04), 0.96):.1%}">{yes:.2f}</span></div>'
        "<span>yes</span></div>"
    )


def beam(change: float, low: float, high: float, status: Status) -> str:
    """Return a difference of shares, from -1 to 1, with its interval: a beam balanced at no change."""
    reach = 1.15 * max(abs(change), abs(low), abs(high), 0.02)

    def at(value: float) -> float:
        return 50 + 50 * value / reach

    tone = {"good": "good", "bad": "bad"}.get(status, "accent")
    ends = {low: "", high: "", change: "font-weight:600"}
    labels = "".join(
        f'<span class="under" style="left:{at(value):.1f}%;{style}">{value * 100:+.0f}</span>'
        for value, style in ends.items()
        if value == change or abs(at(value) - at(change)) > 7
    )
    label = f"{change * 100:+.0f} points, between {low * 100:+.0f} and {high * 100:+.0f}"
    return with_tokens(
        f'<div class="beam" role="img" aria-label="{label}" style="--c:var(--{tone})">'
        f'<i class="line"></i><i class="span" style="left:{at(low):.1f}%;'
        f'width:{at(high) - at(low):.1f}%"></i><i class="zero" style="left:50%"></i>'
        f'<i class="mark" style="left:{at(change):.1f}%"></i>'
        f'<span class="over" style="left:50%">no change</span>{labels}</div>'
    )


def verdict_card(body: Iterable[str], drawn: str, pills: Iterable[str]) -> str:
    """Return a verdict as HTML: its lines, beside them the beam, and the other sentences."""
    beside = f'<div class="wide">{drawn}</div>' if drawn else ""
    return (
        f'<section aria-label="Result"><div class="row"><div class="wide">{"".join(body)}</div>'
        f'{beside}<div class="pills">{"".join(pills)}</div></div></section>'
    )
