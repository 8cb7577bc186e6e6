"""Rows labelled by other models: sources, jobs of teachers, and datasets of accepted rows."""
