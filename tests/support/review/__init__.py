"""Drafts, and desks that review them."""
