"""What leads from other pages to rows under review."""
