"""Models that are made, connected or judge, and what is scored by them."""
