"""What outlives a process: the state in a database, and large tables as files."""
