"""Words and marks of a family's versions."""
