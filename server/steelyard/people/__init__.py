"""People: sign-in, sessions, roles in accounts, and the audit of actions."""
