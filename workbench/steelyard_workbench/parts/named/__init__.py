"""Decisions that were saved under a name: choosing, filtering and starting from one."""
