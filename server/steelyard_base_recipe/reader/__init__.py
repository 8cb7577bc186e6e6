"""The recipe of the reader: an encoder that says whether a text makes a statement true or false."""
