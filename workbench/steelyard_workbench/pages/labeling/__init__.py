"""The Labeling page and the parts that it alone uses."""
