"""Stored decisions, the feedback on them, and summaries of their traffic."""
