"""Other services' shapes of a decision request."""
