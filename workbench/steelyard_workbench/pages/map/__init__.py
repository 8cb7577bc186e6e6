"""The Map page and the parts that it alone uses."""
