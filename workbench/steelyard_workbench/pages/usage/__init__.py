"""The Usage page and the parts that it alone uses."""
