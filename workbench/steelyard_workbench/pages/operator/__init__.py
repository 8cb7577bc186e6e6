"""The Operator page and the parts that it alone uses."""
