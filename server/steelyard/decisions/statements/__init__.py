"""Yes/no questions, outcomes and levels as statements, for readers of text that judge statements."""

from steelyard.decisions.statements.reading import Reading, read_question

__all__ = ("Reading", "read_question")
