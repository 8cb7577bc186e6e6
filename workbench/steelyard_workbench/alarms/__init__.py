"""The parts of the Alarms page."""
