"""Purchases of credit: payments, automatic top-ups, referrals, refunds and providers' events."""
