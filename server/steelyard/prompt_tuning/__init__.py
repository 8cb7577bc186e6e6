"""Prompt tuning: a decision's wording rewritten, tested on the caller's rows, and proven."""
