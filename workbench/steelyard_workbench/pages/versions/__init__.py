"""The Versions page and the parts that it alone uses."""
