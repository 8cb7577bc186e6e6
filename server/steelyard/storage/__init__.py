"""The state: small, transactional, in SQLite or PostgreSQL.

Here: the database with its one writer, its tables and migrations, and functions that read and
write single rows. Not here: the rules of when a row may change (the rooms' services).
"""

from steelyard.storage.database import State, open_counters, open_state

__all__ = ["State", "open_counters", "open_state"]
