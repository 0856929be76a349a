"""`sweep`: every model of a file, for the day that somebody lends a GPU."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ..errors import UserError
from ..option import Option, Tell, check, silent
from . import options

if TYPE_CHECKING:
    from ..eval.inputs import Names
    from .swept import Swept


def sweep(
    file: Annotated[
        "str | Path",
        Option(name="models.toml", help="A table for each model (docs/evaluating.md).", typed=Path),
    ],
    dataset: Annotated["str | Path", options.ASKED] = "robustbench-tc",
    *,
    out: Annotated["str | Path", options.OUT],
    org: Annotated[str | None, options.ORG] = None,
    types: Annotated["Names", options.TYPES] = (),
    samples: Annotated[int | None, options.SAMPLES] = None,
    progress: Tell = silent,
    say: Tell = silent,
) -> "Swept":
    """Serve, probe and evaluate every model in a file, one after the other, and compare them.

    --out becomes a results repository with the complete runs; its folder sweep/ has the runs they were made
    from, the servers' log, failures.json and the comparison, report/report.html. If the command is killed,
    run it again to resume; failed models are tried again. With --types or --samples nothing is submitted,
    because a results repository accepts only whole datasets.

    Example: rbtc sweep models.toml robustbench-tc --out results

    Raises UserError for a file that does not list models.
    """
    check(sweep, locals())
    import msgspec

    from . import swept

    try:
        listed = msgspec.toml.decode(Path(file).read_bytes(), type=dict[str, swept.Listed])
    except (ValueError, msgspec.MsgspecError) as error:
        raise UserError(f"{file}: {error}") from None
    rows = {"types": types, "samples": samples}
    return swept.run(listed, str(dataset), Path(out), org=org, rows=rows, progress=progress, say=say)
