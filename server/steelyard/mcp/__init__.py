"""Tools and resources for agents: the Model Context Protocol in front of a server's API."""
