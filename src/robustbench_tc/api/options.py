"""Options that several verbs have: each is declared here once and means the same in all of them."""

from pathlib import Path

from ..option import Option

RUN = Option(help="A run folder.", typed=Path)
ALLOW_MISSING = Option(help="Go on although some rows have no answer or no text.")
LIMIT = Option(help="At most so many rows.", at_least=1)
SOURCE = Option(help="Only rows of this benchmark source.")
SUBSET = Option(
    help="all; paper: rows whose kind the paper's release has; verified: rows whose answer can be inferred."
)
AGAINST = Option(
    help="The run, baseline or commit on the Hub (org/name@version) to compare with.",
    typed=str | None,
    dashed=True,
)
TYPE = Option(name="type", help="Only this type (code, the paper's name, or label), or clean.")
