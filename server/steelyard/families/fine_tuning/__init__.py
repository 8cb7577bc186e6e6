"""Fine-tunes: their plan, rows, jobs and runs."""
