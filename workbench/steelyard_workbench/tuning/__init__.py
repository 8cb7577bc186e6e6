"""A decision's wording, rewritten and proved."""
