"""Composition: from settings to a running service, and what it says about itself."""
