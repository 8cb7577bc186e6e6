"""The recipe of the base model that ships: its rows, training, export and figures; for a checkout alone."""
