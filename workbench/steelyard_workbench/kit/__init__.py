"""What any page is made of, and which knows no page."""
