"""How much a text field takes, where the server is to say that a text is too long."""

#: Fields of panel-material-ui cut a text at 5,000 characters by default, without a word.
ANY_LENGTH = 10**9
