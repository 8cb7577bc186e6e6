"""Named decisions on the wire. Times are Unix seconds."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from steelyard.accounts.wire import StoreLimit
from steelyard.decisions import rules_wire, wire
from steelyard.wire.limits import MAX_DECISIONS
from steelyard.wire.measures import Measure
from steelyard.wire.queries import CursorPage, PageQuery
from steelyard.wire.schemas import SINGLE_LINE, doc

_Pattern = rf"^{wire.NAME_PATTERN}\Z"
DecisionName = Annotated[
    str,
    Meta(
        pattern=_Pattern,
        description="Small letters, digits, `_` and `-`, at most 64, the first a letter.",
    ),
]
AliasName = Annotated[
    str, Meta(pattern=_Pattern, description="`production`, `staging`, or any other name.")
]
VersionNumber = Annotated[int, Meta(ge=1, le=999_999_999)]
_Why = Annotated[str, Meta(min_length=1, max_length=500, pattern=r"\S")]
Reason = Annotated[_Why | None, doc("Why, for people; not blank.")]
_Text = Annotated[str, Meta(max_length=2_000)]
_Short = Annotated[str, Meta(max_length=128, pattern=SINGLE_LINE)]


class NamedContent(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The content of a version: its questions with their policies, its model, fields and rules."""

    decisions: Annotated[list[wire.DecisionInput], Meta(min_length=1, max_length=MAX_DECISIONS)]
    model: Annotated[
        wire.Name | None, doc("A base model, judge, route or family; the default where left out.")
    ] = None
    fallback: Literal["auto", "none"] | wire.FallbackNames | None = None
    temperature: wire.Temperature | None = None
    escalate: wire.Escalate = None
    fields: rules_wire.Fields | None = None
    rules: rules_wire.Rules | None = None
    otherwise: Annotated[rules_wire.Action | None, doc("The action where no rule holds.")] = None


class AddNamedVersion(NamedContent, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A version to add; one that exists already is answered as it is."""

    note: Annotated[_Text | None, doc("What changed, for people.")] = None


class CreateNamedDecision(AddNamedVersion, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A named decision and its first version, to which `production` points."""

    name: DecisionName
    description: Annotated[_Text | None, doc("For people.")] = None
    owner: Annotated[_Short | None, doc("Who looks after it.")] = None
    dataset_id: Annotated[_Short | None, doc("The dataset of its rows, by its id or its name.")] = (
        None
    )
    store: StoreLimit = "on"


class ChangeNamedDecision(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A change of a named decision; fields left out stay, and an empty text removes."""

    description: _Text | None = None
    owner: _Short | None = None
    dataset_id: _Short | None = None
    store: StoreLimit | None = None


class MoveAlias(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where an alias is to point."""

    version: VersionNumber
    expected: Annotated[
        VersionNumber | None, doc("Refuse the move unless the alias points to this version now.")
    ] = None
    reason: Reason = None
    overrule: Annotated[
        _Why | None,
        doc(
            "Why `production` moves although a comparison did not pass the version, or "
            "without one; kept in the history."
        ),
    ] = None


class RollBackAlias(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Why an alias goes back to where it pointed before its last move."""

    reason: Reason = None


class ArchiveNamedDecision(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Whether a named decision is archived: then it is kept, and answers no requests."""

    archived: bool = True


class NamedAlias(Struct, frozen=True, kw_only=True):
    """An alias, and the version that it points to."""

    alias: str
    version: int
    moved_at: float


_Step = Annotated[float, Meta(gt=0, le=0.9)]
StepHours = Annotated[
    float, Meta(ge=0.1, le=720, description="Hours from one step of a share to the next.")
]


class ShareAlias(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which share of an alias's requests another alias answers."""

    to: AliasName
    share: Annotated[
        float, Meta(ge=0, le=0.9, description="Of the requests that name the alias; 0 ends it.")
    ]
    steps: Annotated[
        list[_Step],
        Meta(max_length=10, description="Shares that follow by themselves, each larger."),
    ] = []
    step_hours: StepHours = 24.0
    reason: Reason = None


class ShareRamp(Struct, frozen=True, kw_only=True):
    """The steps of a share that are still to come, which the server takes by its own clock."""

    steps: list[float]
    step_hours: float
    since: Annotated[float, doc("When the present step began.")]
    next_at: Annotated[float | None, doc("Null at the last one.")]


ShareEnd = Literal["worse", "alarm", "comparison", "ended", "changed", "moved"]


class ShareFigures(Struct, frozen=True, kw_only=True):
    """How often the top outcomes of answers came true, of those with feedback.

    ``before`` is of the alias's own version, ``after`` of the other's.
    """

    before: Measure | None = None
    after: Measure | None = None
    worse: Annotated[
        float, doc("Evidence that the other is right less often; 20 ends the share.")
    ] = 0.0
    alarm: Annotated[str | None, doc("What the alarm said that ended it.")] = None


class NamedShare(Struct, frozen=True, kw_only=True):
    """A share of an alias's requests that another alias answers, or answered."""

    id: str
    alias: str
    to: str
    from_version: int
    to_version: int
    share: float
    started_by: str
    reason: str | None
    created_at: float
    ended_at: Annotated[float | None, doc("Null while it goes on.")]
    ended_by: str | None
    ended_reason: Annotated[
        ShareEnd | None,
        doc(
            "`worse` where feedback showed it, and the server ended it; one with steps "
            "for an `alarm` on the other version's model or a `comparison` that refused it too; "
            "`moved` with either alias."
        ),
    ]
    figures: ShareFigures
    ramp: Annotated[ShareRamp | None, doc("Null without steps.")] = None


class NamedDecision(Struct, frozen=True, kw_only=True):
    """A named decision, and where its aliases point."""

    id: str
    name: str
    description: str | None
    owner: str | None
    dataset_id: str | None
    aliases: Annotated[list[NamedAlias], doc("By name.")]
    shares: Annotated[list[NamedShare], doc("Shares of traffic, the newest ones first; at most 5.")]
    latest: Annotated[int, doc("The number of the newest version.")]
    created_at: float
    archived_at: float | None
    store: StoreLimit = "on"


class NamedVersion(Struct, frozen=True, kw_only=True):
    """A version of a named decision; it never changes."""

    id: str
    name: str
    version: int
    sha256: Annotated[str, doc("Of its content.")]
    decisions: Annotated[list[dict[str, Any]], doc("As they were sent.")]
    model: str | None
    fallback: str | list[str] | None
    temperature: float | None
    escalate: bool | None
    fields: Annotated[dict[str, Any] | None, doc("As they were sent.")] = None
    rules: Annotated[list[dict[str, Any]] | None, doc("As they were sent.")] = None
    otherwise: str | None = None
    note: str | None
    made_by: Annotated[str, doc("An address of mail, a key's id, or the account.")]
    created_at: float

    @property
    def content(self) -> dict[str, Any]:
        """Its content, of which another version can be made."""
        fields = {name: getattr(self, name) for name in NamedContent.__struct_fields__}
        return {name: value for name, value in fields.items() if value is not None}


class AliasMove(Struct, frozen=True, kw_only=True):
    """One move of an alias."""

    id: str
    alias: str
    from_version: Annotated[int | None, doc("Null for its first.")]
    to_version: int
    moved_by: Annotated[str, doc("An address of mail, a key's id, or the account.")]
    reason: str | None
    created_at: float
    comparison_id: Annotated[str | None, doc("The comparison that was relied on.")]
    verdict: Annotated[str | None, doc("Of that comparison.")]
    overruled: Annotated[str | None, doc("Why it was moved without a pass.")]


class NamedDecisionsQuery(PageQuery, frozen=True, kw_only=True):
    """Which page of the account's named decisions."""

    archived: Annotated[bool | None, doc("Only the archived, or only the others; the others.")] = (
        None
    )


class NamedDecisionPage(CursorPage[NamedDecision], frozen=True):
    """A page of named decisions, newest first."""


class NamedVersionPage(CursorPage[NamedVersion], frozen=True):
    """A page of versions, newest first."""


class AliasMovePage(CursorPage[AliasMove], frozen=True):
    """A page of moves, newest first."""
