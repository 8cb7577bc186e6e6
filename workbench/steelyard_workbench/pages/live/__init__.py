"""The Live page and the parts that it alone uses."""
