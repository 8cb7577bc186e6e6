"""Whether one model is as good as another: differences, their intervals and margins, and verdicts by rules."""
