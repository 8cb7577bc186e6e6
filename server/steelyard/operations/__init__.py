"""What a charged request is kept as: idempotency, holds, settlement and replays."""
