"""The parts of every page; they know no page."""
