"""Files that others wrote, as tables: one set of rules for every command that reads a file. Pure.

A table has named columns, and rows with the line that a person finds them on. Rows that cannot be read
exactly are left out with their place and the reason; nothing in a cell is ever changed.
"""
