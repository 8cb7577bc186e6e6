"""Serving: base models, their registry, fallback and the decide use case."""
