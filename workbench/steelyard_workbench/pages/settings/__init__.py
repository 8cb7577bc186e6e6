"""The Settings page and the parts that it alone uses."""
