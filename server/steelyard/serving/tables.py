"""Tables of connected models and routes."""

from sqlalchemy import CheckConstraint, Column, Integer, LargeBinary, Table, Text

from steelyard.storage.tables import metadata

#: Connected models and routes by name, and those that were removed, which have no ``body``. ``number`` is
#: the highest of all at its last change: the highest tells whether anything changed. ``place`` orders
#: them. ``declared`` is what the ``models.toml`` of the home ``declared_by`` last said. ``files`` has the
#: hash of each file that a model needs, once it is stored; all of these are JSON.
model_declarations = Table(
    "model_declarations",
    metadata,
    Column("name", Text, primary_key=True),
    Column("section", Text, nullable=False),
    Column("place", Integer, nullable=False),
    Column("number", Integer, nullable=False, unique=True),
    Column("body", LargeBinary),
    Column("declared", LargeBinary),
    Column("declared_by", Text),
    Column("files", LargeBinary),
    CheckConstraint("section IN ('models', 'routes')", name="section"),
)

#: Openings of a state by servers, each with its machine and home, and whether it would answer as each
#: model, in JSON. Those of dead ones are left until another starts.
model_hosts = Table(
    "model_hosts",
    metadata,
    Column("instance", Text, primary_key=True),
    Column("host", Text, nullable=False),
    Column("models", LargeBinary, nullable=False),
)
