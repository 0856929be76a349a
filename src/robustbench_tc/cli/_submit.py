"""`rbtc leaderboard submit`."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ..errors import UserError
from ..safe_text import safe
from . import _console
from ._checked import print_checked
from ._requests import price_of
from ._words import one_of

if TYPE_CHECKING:
    from ..eval.leaderboard.client import Stage
    from ..eval.leaderboard.records import Checked

EACH_S = 10.0
"""Seconds between two lines of one stage where standard error is not a terminal."""


def submit(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="Run folder, or a predictions file beside its run.json.")
    ],
    url: Annotated[str, typer.Option("--url", help="Address of the board.")],
    model: Annotated[str | None, typer.Option("--model", help="Name on the board, if another.")] = None,
    params: Annotated[
        float | None, typer.Option("--params", help="Parameters in billions, if the name does not say.")
    ] = None,
    card: Annotated[str | None, typer.Option("--card", help="The model card's address on the Hub.")] = None,
    licence: Annotated[str | None, typer.Option("--licence", help="SPDX id, such as apache-2.0.")] = None,
    weights: Annotated[
        Literal["open", "closed"] | None,
        one_of("kind of weights", "open", "closed", help="open: anybody can download them; or closed."),
    ] = None,
    price: Annotated[
        str | None,
        typer.Option("--price", metavar="IN,OUT", help="USD per million prompt and completion tokens."),
    ] = None,
    record: Annotated[Path | None, typer.Option("--record", help="run.json, if it lies elsewhere.")] = None,
    dataset: Annotated[
        str | None, typer.Option("--dataset", help="For the check here; default: what the run was made on.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="List it without asking.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Submit a run, also a live one, to a leaderboard: check it here, upload it, see the result, list it.

    The same command goes on where it was stopped. A board on a Space knows you by your Hugging Face token.

    Example: rbtc leaderboard submit runs/qwen3-8b-fc --url https://acme-board.hf.space --licence apache-2.0
    """
    from ..eval.leaderboard.client import NotTaken
    from ..eval.leaderboard.client import submit as submit_run

    telling = _Telling()
    asking = _Asking(telling, yes=yes, as_json=as_json)
    with _console.keeping(telling.kept):
        try:
            done = submit_run(
                run,
                url,
                model=model,
                params=params,
                card=card,
                licence=licence,
                weights=weights,
                price=price_of(price) if price else None,
                record=record,
                dataset=dataset,
                confirm=asking.confirm,
                signing_in=asking.sign_in,
                progress=telling,
            )
        except NotTaken as refusal:
            telling.pause()
            if as_json:
                _console.json(refusal.checked)
            else:
                print_checked(refusal.checked)
            raise
        finally:
            telling.pause()
    if as_json:
        _console.json(done)
    if done.submission is None:
        how = "say --yes to list it" if asking.nobody else "the same command asks again"
        raise UserError(f"not listed: {how}; the board keeps the result for an hour")
    if not as_json:
        _console.out.print(f"listed as unverified: {safe(done.page or '')}", markup=False)


class _Asking:
    """What the user is asked on the way, where there is a user."""

    def __init__(self, telling: "_Telling", *, yes: bool, as_json: bool) -> None:
        self._telling = telling
        self._yes = yes
        self._as_json = as_json
        self.nobody = as_json or not sys.stdin.isatty()

    def confirm(self, checked: "Checked") -> bool:
        """Shows the result, and asks whether it is to be listed."""
        self._telling.pause()
        if not self._as_json:
            print_checked(checked)
        if self._yes or self.nobody:
            return self._yes
        question = "List it on the board? What is listed is public, raw answers included [y/N] "
        return _console.ask(question) in ("y", "yes")

    def sign_in(self, where: str) -> bool:
        """Whether the board there may see the token. Spaces need no question: their keeper is the Hub's."""
        self._telling.pause()
        _console.note(f"{where} is shown your Hugging Face token, to know your account")
        if self._yes or where.endswith(".hf.space"):
            return True
        return not self.nobody and _console.ask("Show it? [y/N] ") in ("y", "yes")


class _Telling:
    """Says how far a submission is: one changing line on a terminal, else a line for each stage and step."""

    def __init__(self) -> None:
        self._said = ""
        self._at = 0.0
        self._line = ""
        self._spinner = _console.err.status("")

    def __call__(self, stage: "Stage") -> None:
        self._line = line_of(stage)
        if _console.err.is_terminal:
            self._spinner.update(_console.styled(self._line))
            self._spinner.start()
        elif stage.name != self._said or time.monotonic() - self._at >= EACH_S:
            _console.note(self._line)
            self._said, self._at = stage.name, time.monotonic()

    def pause(self) -> None:
        """Takes the changing line away: other lines follow."""
        self._spinner.stop()

    def kept(self) -> str:
        """What Ctrl-C leaves."""
        return f"{self._line or 'nothing was sent'}; the board keeps what it has, the same command goes on"


def line_of(stage: "Stage") -> str:
    """`uploading: 3.0 of 12.5 MB`, `waiting: place 2, about 40 s`."""
    about = "" if stage.seconds is None else f"about {_console.time_of(stage.seconds)}"
    if stage.name == "uploading":
        unit, name = (1e6, "MB") if stage.total >= 1e6 else (1e3, "kB")
        return f"uploading: {stage.sent / unit:.1f} of {stage.total / unit:.1f} {name}"
    place = "" if stage.place is None else f"place {stage.place}"
    rest = ", ".join(part for part in (place, about) if part)
    return f"{stage.name}: {rest}" if rest else stage.name
