"""The benchmark under other harnesses: tasks with our rows, prompts and scorers, and their logs as runs."""
