"""The Review page and the parts that it alone uses."""
