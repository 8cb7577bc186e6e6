"""Names that no model or family of this server may have."""

#: Names of models that start so belong to TypeSafe's service and mean the default base model here.
FOREIGN_PREFIX = "jev"
