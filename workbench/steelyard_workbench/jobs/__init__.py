"""Fine-tunes, evaluations and maps that wait, run or have ended."""
