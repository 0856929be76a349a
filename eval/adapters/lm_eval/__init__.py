"""The benchmark as tasks of lm-eval: the files that `--include_path` takes, and the class behind them."""
