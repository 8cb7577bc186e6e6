"""The Tuning page and the parts that it alone uses."""
