"""The report: tables and figures of the paper for your models, as one page that works offline.

`content` gathers the numbers, `figures` draws them, `page` writes HTML, Markdown, CSV and JSON, `check` holds
our own arithmetic to the paper's printed figures.
"""
