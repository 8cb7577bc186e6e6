"""Decisions: kinds, outcomes, rules of a valid request, policy, temperature, answers."""
