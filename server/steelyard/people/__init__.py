"""People: who signs in, their sessions, their parts in accounts, and what they did."""
