"""What an account has of models and what may become of it: values and commands. Pure."""
