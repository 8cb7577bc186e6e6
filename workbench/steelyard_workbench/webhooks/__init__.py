"""The parts of the Webhooks page."""
