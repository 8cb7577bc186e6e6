"""Migrations of the state's tables, run by Alembic."""
