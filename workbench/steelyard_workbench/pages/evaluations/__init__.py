"""The Evaluations page and the parts that it alone uses."""
