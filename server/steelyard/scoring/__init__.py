"""Engines: from rendered requests to logits."""
