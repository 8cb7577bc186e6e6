"""Tables of shadows of families, and of their answers."""

from sqlalchemy import Column, Double, ForeignKey, Index, LargeBinary, Table, Text

from steelyard.storage.tables import metadata

#: The model that scores beside a family: as it is called, and its id.
shadows = Table(
    "shadows",
    metadata,
    Column("account_id", Text, ForeignKey("accounts.id"), primary_key=True),
    Column("family", Text, primary_key=True),
    Column("model", Text, nullable=False),
    Column("model_id", Text, nullable=False),
    Column("share", Double, nullable=False),
    Column("since", Double, nullable=False),
)

#: A stored answer that a shadow took up; ``results``, JSON, are null until it has answered, and stay so
#: where it could not.
shadow_answers = Table(
    "shadow_answers",
    metadata,
    Column("decision_id", Text, ForeignKey("decisions.id", ondelete="CASCADE"), primary_key=True),
    Column("account_id", Text, nullable=False),
    Column("family", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("taken_at", Double, nullable=False),
    Column("results", LargeBinary),
    Index(None, "account_id", "family", "taken_at"),
)
