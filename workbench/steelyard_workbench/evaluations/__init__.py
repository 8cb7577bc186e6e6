"""Parts of the pages of evaluations: lists, charts, the rows behind them, what-ifs."""
