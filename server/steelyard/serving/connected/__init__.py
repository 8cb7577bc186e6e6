"""Base models that answer elsewhere: declared by an operator, asked over one of several wires."""
