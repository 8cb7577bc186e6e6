"""The Compare page and the parts that it alone uses."""
