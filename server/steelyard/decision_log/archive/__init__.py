"""Stored decisions of closed days, moved from the state to files that never change.

A file is durable before the state names it, and rows leave the state only after: until then a row is in
both, and the state's counts. Decisions with feedback or a shadow stay in the state, and feedback on a
decision that has left brings it back.
"""
