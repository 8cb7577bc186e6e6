"""Drafts of dataset versions: their rows, edits and sealing."""
