"""The shape of TypeSafe's System One."""
