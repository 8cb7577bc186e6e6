"""The Families page and the parts that it alone uses."""
