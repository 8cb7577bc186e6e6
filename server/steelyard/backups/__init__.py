"""Backups of this server's home: where they are, which there are, and making one."""
