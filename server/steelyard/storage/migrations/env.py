"""How Alembic runs the migrations: on the connection and in the transaction of its caller."""

from alembic import context

from steelyard.storage.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
