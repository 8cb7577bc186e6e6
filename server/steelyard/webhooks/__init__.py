"""Webhooks: events of an account delivered to endpoints of other programs."""
