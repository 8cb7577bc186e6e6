"""Bounds of a request that rooms share, and that accounts publish."""

#: The most decisions of a row, of a named decision and, unless a setting says so, of a request.
MAX_DECISIONS = 64
#: The most decisions of a request whatever the setting, and questions in the form of OpenAI's clients.
MAX_QUESTIONS = 128
#: The most decisions of a request to the playground.
MAX_PLAYGROUND_DECISIONS = 8
#: Bounds of the outcomes of a decision.
MIN_OUTCOMES, MAX_OUTCOMES = 2, 255
#: Most models of a route.
MAX_STEPS = 4
#: The most tokens that a judge may be allowed to write before it answers, and how many unless it is said.
MAX_THOUGHT_TOKENS, THOUGHT_TOKENS = 1_024, 200
#: Bounds of the rows of work on datasets, by the names under which they are published.
ROW_LIMITS = {
    "fine_tune_min_rows": 20,
    "fine_tune_rows": 50_000,
    "prompt_tuning_min_rows": 40,
    "prompt_tuning_rows": 5_000,
    "labeling_rows": 10_000,
}
