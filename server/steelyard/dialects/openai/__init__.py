"""The shape of OpenAI's decisions."""
