"""What is watched, and its alarms."""
