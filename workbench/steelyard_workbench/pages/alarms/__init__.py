"""The Alarms page and the parts that it alone uses."""
