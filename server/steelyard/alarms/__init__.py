"""Alarms: stored decisions watched for drift, by tests that may be looked at as often as one likes."""
