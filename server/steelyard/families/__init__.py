"""Families: lines of models grown on one dataset each, and every change that may be made to them."""
