"""The Jobs page and the parts that it alone uses."""
