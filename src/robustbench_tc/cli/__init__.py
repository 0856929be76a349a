"""`rbtc`: the command line. Every verb is a thin call into one room; heavy imports wait for their verb."""

import errno
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..errors import UserError

if TYPE_CHECKING:
    import typer


def main() -> None:
    """Entry point. A `UserError` is one line on standard error and exit code 1, never a traceback."""
    # Set before anybody imports huggingface_hub: a command line tool does not phone home.
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    try:
        _app()()
    except UserError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        _fail("interrupted: run the same command again to go on", code=130)
    except BrokenPipeError:
        # The reader went away (`rbtc show … | head`): nothing to say, and nowhere to say it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except OSError as error:
        mend = {errno.ENOSPC: "free some space", errno.EACCES: "choose another place, or change its rights"}
        where = f"{error.filename}: " if error.filename else ""
        hint = mend.get(error.errno or 0)
        _fail(f"{where}{error.strerror or error}" + (f" ({hint})" if hint else ""))


def _app() -> "typer.Typer":
    import typer

    from . import (
        audit,
        build,
        compare,
        eval,
        leaderboard,
        release,
        report,
        runs,
        show,
        sources,
        sql,
        train,
        vectors,
    )

    app = typer.Typer(
        name="rbtc",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        help="RobustBench-TC: does my tool-calling model survive deployment?",
    )
    app.callback()(_options)
    # One panel a stage, in the order of the pipeline.
    panels: dict[str, dict[str, Callable[..., None]]] = {
        "Build": {"show": show.show, "validate": vectors.validate},
        "Evaluate": {
            "eval": eval.eval_,
            "score": runs.score,
            "summary": runs.summary,
            "serve-command": runs.serve_command,
            "export": runs.export,
            "import": runs.import_,
            "vectors": vectors.vectors,
        },
        "Answers": {
            "report": report.report,
            "compare": compare.compare,
            "failures": compare.failures,
            "sql": sql.sql,
        },
        "Release": {
            "release": release.release,
            "verify": release.verify,
            "diff": release.diff,
            "publish": release.publish,
        },
    }
    building = typer.Typer()
    building.callback(invoke_without_command=True)(build.build)
    building.command("toolrl-dr")(train.build_toolrl_dr)
    app.add_typer(sources.app, name="sources", rich_help_panel="Build")
    app.add_typer(building, name="build", rich_help_panel="Build")
    show.app.command("sources")(sources.list_sources)
    app.add_typer(show.app, name="list", rich_help_panel="Build")
    app.add_typer(audit.app, name="audit", rich_help_panel="Release")
    for panel, commands in panels.items():
        for name, command in commands.items():
            app.command(name, rich_help_panel=panel)(command)
    training = typer.Typer(no_args_is_help=True, help="Training: what can go wrong before the GPU is rented.")
    training.callback()(_options)
    training.command("check")(train.check)
    app.add_typer(training, name="train", rich_help_panel="Train")
    app.add_typer(leaderboard.app, name="leaderboard", rich_help_panel="Answers")
    return app


def _options() -> None:
    """RobustBench-TC: does my tool-calling model survive deployment?"""


def _fail(line: str, code: int = 1) -> None:
    print("rbtc: " + " ".join(line.split("\n")), file=sys.stderr)  # noqa: T201 - the one place for it
    sys.exit(code)
