"""The Playground page and the parts that it alone uses."""
