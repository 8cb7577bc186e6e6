"""Labels of other models under review."""
