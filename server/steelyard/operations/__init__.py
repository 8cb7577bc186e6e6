"""Charged requests as operations: idempotency, holds, settlement and replays."""
