"""Money, prices and the books of accounts: exact, in integers of nano-USD."""
