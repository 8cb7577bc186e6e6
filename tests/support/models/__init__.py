"""Models that are made, connected or judge, and scored rows."""
