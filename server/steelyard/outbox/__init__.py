"""What happened to an account, kept for its webhooks in the transaction that caused it."""
