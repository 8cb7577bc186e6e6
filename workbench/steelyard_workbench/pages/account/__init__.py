"""The Account page and the parts that it alone uses."""
