"""The look as tokens: colours in pairs for light and dark, one scale each of type and of height.

Every text has a contrast of 4.5 to 1 or more on every ground (WCAG 2.2, 1.4.3), and nothing is said by
colour alone. Style sheets read a colour as ``var(--mui-palette-look-…)``, which follows the theme.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal
from zlib import crc32

Status = Literal["good", "bad", "unsure", "running", "off"]

#: Of each its colour in the light and in the dark theme.
_TOKENS: dict[str, tuple[str, str]] = {
    "ground": ("#f7f6f3", "#11151b"),
    "surface": ("#ffffff", "#191f27"),
    "sunk": ("#f1efea", "#141a21"),
    "line": ("#e2dfd8", "#2a323d"),
    "line-strong": ("#c9c4b8", "#414b59"),
    "ink": ("#1b2330", "#e8ebf0"),
    "muted": ("#566070", "#aab3c0"),
    "accent": ("#1f5c86", "#86bde2"),
    "accent-ink": ("#ffffff", "#0d1a24"),
    "accent-tint": ("#e6eff6", "#1c3243"),
    "brass": ("#7f5716", "#e0b566"),
    "brass-tint": ("#f6ecd9", "#37290f"),
    "good": ("#1d7a4d", "#63c795"),
    "good-tint": ("#e3f3ea", "#14322a"),
    "bad": ("#b3372c", "#f08a7e"),
    "bad-tint": ("#fae7e4", "#3d1d1a"),
    "warn": ("#855800", "#eabb5a"),
    "warn-tint": ("#fbf0d6", "#382a0c"),
}
#: Of outcomes, and of series: the light ones have 3 to 1 or more against the surface of both themes,
#: so that drawings on a canvas, which no style sheet reaches, have them in both.
_OUTCOMES: tuple[tuple[str, str], ...] = (
    ("#2f6fa8", "#6faee0"),
    ("#b5651d", "#e09a5a"),
    ("#2f8f6b", "#66c6a1"),
    ("#a6478a", "#d98bc4"),
    ("#7a6cc4", "#a99dec"),
    ("#8a7a1f", "#cdbd5e"),
    ("#5b7382", "#9cb2c0"),
    ("#c24f4f", "#ee8f8f"),
)
#: The filter through which each theme shows such drawings.
_MARKS = {"light": "none", "dark": "brightness(1.35)"}
#: Series in the order in which they are given colours, for drawings.
SERIES = tuple(light for light, _ in _OUTCOMES)
BLUE, ORANGE, GREEN, PURPLE, VIOLET, YELLOW, SLATE, RED = SERIES
GREY = "#888888"
#: Places of the colours of outcomes that mean the same everywhere.
_USUAL = {"yes": 0, "true": 0, "no": 6, "false": 6, "other": 6, "none": 6}
#: The others, of which a name has one of its own.
_OTHERS = (0, 1, 2, 3, 4, 5, 7)


def outcome_places(outcomes: Iterable[str]) -> dict[str, int]:
    """Return the place of the colour of each outcome of a decision, the same wherever it is shown.

    A name has a place of its own; one that another of the same decision has already is not given
    twice while there is a free one.

    ``outcomes``: all of the decision, in any order.

    >>> outcome_places(["no", "yes"]) == outcome_places(["yes", "no"]) == {"yes": 0, "no": 6}
    True
    >>> len(set(outcome_places(["account", "billing", "shipping", "technical"]).values()))
    4
    """
    places: dict[str, int] = {}
    for name in sorted(set(outcomes), key=lambda name: (name.lower() not in _USUAL, name)):
        if name.lower() in _USUAL or name.isdecimal():
            own = _USUAL.get(name.lower(), int(name) % len(SERIES) if name.isdecimal() else 0)
            order = [own, *_OTHERS]
        else:
            at = crc32(name.encode()) % len(_OTHERS)
            order = [*_OTHERS[at:], *_OTHERS[:at]]
        free = [place for place in order if place not in places.values()]
        places[name] = free[0] if free else order[0]
    return places


def outcome_colours(outcomes: Iterable[str]) -> dict[str, str]:
    """Return the colour of each outcome of a decision for style sheets; it follows the theme."""
    return {
        name: f"var(--mui-palette-look-outcome-{place})"
        for name, place in outcome_places(outcomes).items()
    }


#: The outline of what has the focus: 3 to 1 or more against the ground of both themes (1.4.11).
FOCUS = "#0a84c6"
_OUTLINE = {"outline": f"3px solid {FOCUS}", "outlineOffset": "2px"}
_INNER = {**_OUTLINE, "outlineOffset": "-3px"}
#: Labels stand as they are written, on one line.
_AS_WRITTEN = {"textTransform": "none", "whiteSpace": "nowrap"}
#: Colours change at once for whoever wants less motion.
_STILL = {"@media (prefers-reduced-motion: reduce)": {"transition": "none"}}

#: The one scale of sizes: 40 pixels for a verdict, 28 for the title of a page and for figures, 16 for
#: headings, 14 for text and tables, 12 for what stands beside text. In rem, of which the page makes 14
#: pixels where the browser's own size is 16.
VERDICT, TITLE = "2.857rem", "2rem"
HEADING, TEXT, SMALL = "1.143rem", "1rem", "0.857rem"
FONT = "Roboto, Helvetica, Arial, sans-serif"
#: Width of running text that reads well, and of a page on a wide screen.
READING_WIDTH, PAGE_WIDTH = "75ch", 1280
#: The height of all that stands in a row.
_HEIGHT = 36
_TYPOGRAPHY = {
    "h1": {"fontSize": TITLE, "fontWeight": 700},
    "h2": {"fontSize": HEADING, "fontWeight": 700},
    "h3": {"fontSize": HEADING, "fontWeight": 600},
    "body1": {"fontSize": TEXT},
    "body2": {"fontSize": TEXT},
    "button": {"fontSize": TEXT, "fontWeight": 600, "letterSpacing": 0},
    "caption": {"fontSize": SMALL},
}

#: Of buttons in the bar at the top: quiet, in the colour of its words.
ON_BAR = {"&&": {"color": "inherit", "background": "none", "fontSize": SMALL}, **_AS_WRITTEN}


def token(name: str) -> str:
    """Return a colour for a style sheet, which follows the theme.

    >>> token("accent")
    'var(--mui-palette-look-accent)'
    """
    return f"var(--mui-palette-look-{name})"


#: What a card says to the tables in it: no frame, and nothing left free at their left.
IN_CARD = {"--card-line": "0", "--card-side": "0"}
#: Of every part on a phone: as wide as there is room, whatever width it has on a desk, rows wrap, and what
#: is marked so stands under what one came for, or is closed until a press.
ON_PHONE = """
@media (min-width: 600px) { .only-on-phone { display: none !important; } }
@media (max-width: 599px) {
  .closed-on-phone { display: none !important; }
  :host, :host > div { max-width: 100% !important; min-width: 0 !important; }
  :host(.bk-Row), .MuiBox-root { flex-wrap: wrap !important; }
  .below-on-phone { order: 1; }
}
"""

#: Of the page: a warm ground, with room around what stands on it where there is room.
PAGE = {
    "& main.main": {"backgroundColor": token("ground"), "minHeight": "100vh"},
    "@media (min-width: 600px)": {"& .main-content": {"padding": "12px 22px 48px"}},
    # Of a bar of buttons at the foot of a phone, which lies over nothing.
    "@media (max-width: 599px)": {"& .main-content": {"paddingBottom": "64px"}},
}


def colours_of(theme: str) -> dict[str, str]:
    """Return the colours of a theme, ``light`` or ``dark``, as hex by name."""
    side = ("light", "dark").index(theme)
    outcomes = {f"outcome-{place}": pair[side] for place, pair in enumerate(_OUTCOMES)}
    return {name: pair[side] for name, pair in _TOKENS.items()} | outcomes


_HAIRLINE = f"1px solid {token('line')}"


def _styles(**parts: object) -> dict[str, object]:
    """Return the styles of a component by its parts, as MUI names them."""
    return {"styleOverrides": parts}


_COMPONENTS = {
    "MuiPaper": _styles(
        root={"backgroundImage": "none", **IN_CARD},
        rounded={"borderRadius": 8},
        elevation1={"border": _HAIRLINE, "boxShadow": "0 1px 3px rgba(27,35,48,0.07)"},
    ),
    # What cannot be pressed now is read all the same: MUI's own grey has 2 to 1.
    "MuiButton": _styles(
        root={
            **_STILL,
            "&&": {
                "minHeight": _HEIGHT,
                "fontSize": TEXT,
                "padding": "2px 14px",
                "borderRadius": 6,
                "boxShadow": "none",
            },
            "&&.Mui-disabled": {"color": token("muted")},
            "&&.MuiButton-outlined.MuiButton-colorPrimary:not(.Mui-disabled)": {
                "color": token("ink"),
                "borderColor": token("line-strong"),
                "backgroundColor": token("surface"),
                "&:hover": {"backgroundColor": token("sunk")},
            },
            "&&.MuiButton-text.MuiButton-sizeSmall": {"padding": "2px 8px"},
        },
    ),
    "MuiListItemButton": _styles(
        root={
            "&.Mui-focusVisible": _INNER,
            "&&&&.Mui-selected": {
                "backgroundColor": token("accent-tint"),
                "color": token("accent"),
            },
        }
    ),
    "MuiListItemIcon": _styles(
        root={
            "&&": {"color": token("muted")},
            "&&&& .MuiIcon-root": {"color": "inherit", "fontSize": 20},
            ".Mui-selected > &&": {"color": token("accent")},
        }
    ),
    # Items of a menu are thinned out to a third otherwise.
    "MuiMenuItem": _styles(
        root={
            "&.Mui-focusVisible": _INNER,
            "&&.Mui-disabled": {"opacity": 1, "color": token("muted")},
        }
    ),
    "MuiAccordion": _styles(
        root={
            "&&": {"border": _HAIRLINE, "borderRadius": 8, "boxShadow": "none"},
            "&::before": {"display": "none"},
        }
    ),
    # What is said stands on the page, without a box: its icon and its words tell how it is.
    "MuiAlert": _styles(
        root={
            "&&": {
                "border": 0,
                "padding": "2px 0",
                "background": "none",
                "color": "inherit",
                "fontSize": TEXT,
                "maxWidth": READING_WIDTH,
            },
            # But a message that comes and goes lies over the page.
            ".notistack-SnackbarContainer &&&": {
                "backgroundColor": token("surface"),
                "color": token("ink"),
                "padding": "4px 16px",
                "boxShadow": "0 2px 8px rgba(0,0,0,0.4)",
            },
        },
        icon={"&&": {"padding": "5px 0", "marginRight": "8px", "fontSize": "20px"}},
        # The text begins beside the icon: paragraphs have margins between them only.
        message={
            "&&": {"paddingBlock": "5px"},
            "& > .MuiAlertTitle-root:empty": {"display": "none"},
            "& :first-child, & p:first-of-type": {"marginTop": 0},
            "& p:last-of-type": {"marginBottom": 0},
        },
    ),
    "MuiAppBar": _styles(
        root={
            "backgroundColor": token("surface"),
            "backgroundImage": "none",
            "color": token("ink"),
            "boxShadow": "none",
            "borderBottom": _HAIRLINE,
            "&& :focus-visible": _INNER,
        }
    ),
    # The bar, and the room that is kept for it above the page.
    "MuiToolbar": _styles(root={"&&": {"minHeight": "48px"}}),
    # The label above a field, and the gap in its frame, which is as wide as the text of both.
    "MuiInputLabel": _styles(
        outlined={
            "&&:not(.MuiInputLabel-shrink)": {"transform": "translate(14px, 8px)"},
            "&&.MuiInputLabel-shrink": {
                "fontSize": SMALL,
                "transform": "translate(14px, -8px)",
                "maxWidth": "calc(100% - 28px)",
            },
        }
    ),
    "MuiOutlinedInput": _styles(
        root={
            "borderRadius": 6,
            "backgroundColor": token("surface"),
            "&&.MuiInputBase-multiline": {"padding": "8px 14px"},
        },
        notchedOutline={"&& legend": {"fontSize": SMALL}},
        # Fields are of one height, whether text is written or chosen in them.
        input={
            "unicodeBidi": "plaintext",
            "&&&:not(.MuiInputBase-inputMultiline)": {"paddingBlock": "8px"},
        },
    ),
    "MuiButtonBase": _styles(root={"&.Mui-focusVisible": _OUTLINE}),
    "MuiTab": _styles(root={"&.Mui-focusVisible": _INNER, **_AS_WRITTEN, **_STILL}),
    "MuiToggleButton": _styles(
        root={
            **_AS_WRITTEN,
            **_STILL,
            "&&": {
                "flex": "0 0 auto",
                "width": "auto",
                "height": _HEIGHT,
                "padding": "0 14px",
                "backgroundColor": token("surface"),
            },
            "&&.MuiToggleButton-sizeSmall": {"padding": "0 9px"},
            "&&&.Mui-selected": {
                "backgroundColor": token("accent-tint"),
                "color": token("accent"),
            },
        },
    ),
    "MuiToggleButtonGroup": _styles(root={"&&": {"flexWrap": "wrap"}}),
    # What was chosen, in a field for several.
    "MuiChip": _styles(
        root={
            "&&": {
                "height": 24,
                "color": token("accent"),
                "backgroundColor": token("accent-tint"),
                "& .MuiChip-deleteIcon": {"color": "inherit", "fontSize": 16},
            }
        }
    ),
    # Panel-material-ui gives code a light blue of 2.3 to 1 on white.
    "MuiTypography": _styles(root={"&& code": {"color": "inherit"}}),
    # A long title ends in its dialog on a phone, too.
    "MuiDialogTitle": _styles(root={"flexShrink": 1}),
    # A dialog that is scrolled takes the focus itself.
    "MuiDialog": _styles(paper={"&:focus-visible": _INNER}),
    "MuiSwitch": _styles(root={"&:has(input:focus-visible)": _INNER}),
    "MuiCheckbox": _styles(root={"&:has(input:focus-visible)": _INNER}),
    "MuiRadio": _styles(root={"&:has(input:focus-visible)": _INNER}),
}


def _config(theme: str) -> dict[str, object]:
    """Return a theme; fields that are disabled are read too: MUI's grey has 2.7 to 1."""
    look = colours_of(theme)
    palette = {
        "primary": {"main": look["accent"], "contrastText": look["accent-ink"]},
        "secondary": {"main": look["brass"]},
        "success": {"main": look["good"]},
        "error": {"main": look["bad"]},
        "warning": {"main": look["warn"]},
        "info": {"main": look["accent"]},
        "text": {"primary": look["ink"], "secondary": look["muted"], "disabled": look["muted"]},
        "background": {"default": look["ground"], "paper": look["surface"]},
        "action": {"hover": look["sunk"], "disabledBackground": look["sunk"]},
        "divider": look["line"],
        "look": look | {"marks": _MARKS[theme]},
    }
    return {"palette": palette, "typography": _TYPOGRAPHY, "components": _COMPONENTS}


THEME_CONFIG = {theme: _config(theme) for theme in ("light", "dark")}
