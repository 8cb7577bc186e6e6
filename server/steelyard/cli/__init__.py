"""The command line, one module a command. Commands load what they need when they run."""
