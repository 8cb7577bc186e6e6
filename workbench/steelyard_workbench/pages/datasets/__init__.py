"""The Datasets page and the parts that it alone uses."""
