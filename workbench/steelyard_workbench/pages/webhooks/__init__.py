"""The Webhooks page and the parts that it alone uses."""
