"""What every answer and error of the API is held to."""
