"""What the Review page is made of: rows, edits, and the views of them."""
