"""The frame around every page: the mark, the menu, the title and the tabs."""
