"""Watched models, and their alarms."""
