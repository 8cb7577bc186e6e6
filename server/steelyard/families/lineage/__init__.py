"""An account's families, models and fine-tunes, and the commands on them: values. Pure."""
