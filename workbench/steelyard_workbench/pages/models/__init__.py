"""The Models page and the parts that it alone uses."""
