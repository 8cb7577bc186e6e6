"""An evaluation, opened: its charts, its records and its report."""
