"""Links from other pages to rows under review."""
