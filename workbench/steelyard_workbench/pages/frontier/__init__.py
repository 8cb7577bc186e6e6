"""The Frontier page and the parts that it alone uses."""
