"""The Decisions page and the parts that it alone uses."""
