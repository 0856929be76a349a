"""Options that several verbs have: each is declared here once and means the same in all of them."""

from pathlib import Path

from ..option import Option

RUN = Option(help="A run folder.", typed=Path)
ALLOW_MISSING = Option(help="Go on although some rows have no answer or no text.")
SUBSET = Option(
    help="all; paper: rows whose kind the paper's release has; verified: rows whose answer can be inferred."
)
AGAINST = Option(
    help="The run, baseline or commit on the Hub (org/name@version) to compare with.",
    typed=str | None,
    dashed=True,
)
