"""The linter: wording and forms of valid decisions that make their answers worse.

It looks at words and structure; no model runs. ``registry`` lists the rules, ``findings`` applies
them. The rules live by theme in ``questions``, ``references``, ``outcomes``, ``rubrics``,
``policies`` and ``requests``. Their English is in ``sentences``, ``negations``,
``compounds``, ``arithmetic``, ``exits`` and ``scales``; a text in another language has fewer
findings, not wrong ones.
"""
