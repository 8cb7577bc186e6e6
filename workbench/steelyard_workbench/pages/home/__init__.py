"""The Home page and the parts that it alone uses."""
