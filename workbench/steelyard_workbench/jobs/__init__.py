"""Fine-tunes and evaluations that wait, run or have ended."""
