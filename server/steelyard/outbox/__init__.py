"""Events of an account, stored for its webhooks in the transaction that caused them."""
