"""Credit that is bought: purchases, top-ups, referrals, refunds and what providers say of them."""
