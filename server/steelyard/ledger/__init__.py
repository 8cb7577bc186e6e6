"""Money and prices: exact, in integers of nano-USD."""
