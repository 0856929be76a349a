"""`list`: what exists by name."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from .. import taxonomy
from ..option import Option
from ..shown import Table
from . import options


@dataclass(frozen=True)
class Listing:
    """A table, and the same for programs."""

    table: Table
    rows: list[dict[str, Any]]

    def shown(self) -> Iterator[Table]:
        """The table."""
        yield self.table

    def json(self) -> list[dict[str, Any]]:
        """One object per row."""
        return self.rows


def list_types() -> Listing:
    """List the perturbation types: code and label, the paper's name, component, method.

    Example: rbtc list types --json
    """
    import msgspec

    from ..builders.configs import published

    kinds = taxonomy.types("all")
    columns = ("type", "paper's name", "component", "level", "pack", "method", "what is modified")
    lines = [
        (
            taxonomy.named(kind.code),
            kind.display_name,
            kind.component,
            kind.level,
            kind.pack,
            kind.method,
            kind.what_is_modified,
        )
        for kind in kinds
    ]
    rows = [msgspec.to_builtins(kind) | msgspec.to_builtins(published(kind)) for kind in kinds]
    return Listing(Table(columns, lines, folded=columns[1:]), rows)


def list_faults() -> Listing:
    """List the faults of live rows: type code, how each is built, what happens, the right reaction.

    Example: rbtc list faults --json
    """
    from .. import live_types
    from ..dataset_cards.live import told_faults

    columns = ("type", "built", "what happens", "what is right")
    by_name = live_types.by_name()
    lines = [
        (code, "by name (--types)" if code in by_name else "by default", *told_faults()[kind])
        for kind, code in zip(live_types.FAULT_TYPES, live_types.type_codes(), strict=False)
    ]
    rows = [dict(zip(columns, line, strict=True)) for line in lines]
    return Listing(Table(columns, lines, folded=columns[2:]), rows)


def list_sources() -> Listing:
    """List the upstream repositories with commit, licence and the files used.

    Example: rbtc list sources --json
    """
    from ..builders.sources.upstream import pins

    rows = list(pins().rows())
    columns = ("source", "repository", "commit", "licence", "files", "bytes")
    lines = [
        (*(str(row[name])[:40] for name in columns[:4]), str(row["files"]), f"{row['bytes']:,}")
        for row in rows
    ]
    return Listing(Table(columns, lines, folded=columns[1:4]), rows)


def list_defences() -> Listing:
    """List the defences for `--defend`: code, ways, further requests, effect.

    Example: rbtc list defences
    """
    from ..eval.defend import DEFENCES

    rows = [
        {
            "code": kind.code,
            "ways": list(kind.ways),
            "requests": "k - 1" if kind.code == "vote" else str(kind.requests),
            "modes": list(kind.modes),
            "what": kind.what,
        }
        for kind in DEFENCES.values()
    ]
    columns = ("code", "ways", "further requests", "modes", "what")
    lines = [tuple(v if isinstance(v, str) else ", ".join(v) for v in row.values()) for row in rows]
    return Listing(Table(columns, lines, folded=columns[1:]), rows)


def list_models(
    model: Annotated[str, Option(help="A name or Hub id: print the server's command for it.")] = "",
    weights: Annotated[str | None, Option(help="Folder or Hub id, if the table names none.")] = None,
    *,
    port: Annotated[int, options.PORT] = 8000,
) -> Listing | str:
    """List the paper's models and current open ones; with MODEL, print its `vllm serve` command.

    Example: rbtc list models Qwen3-8B
    """
    import msgspec

    from ..eval.models import models, serve_command

    if model:
        return serve_command(model, weights=weights, port=port)
    rows = [msgspec.to_builtins(one) for one in models().values()]
    columns = ("name", "group", "mode", "params_b", "parser", "weights", "base_url")
    lines = [tuple(str(row[name] or "") for name in columns) for row in rows]
    return Listing(Table(columns, lines, folded=columns[5:]), rows)


def list_inspect() -> Path:
    """Print the folder to copy for the Inspect Evals Register: a repository with the benchmark as tasks.

    Example: rbtc list inspect
    """
    return (Path(__file__).parents[1] / "integrations" / "inspect").resolve()


def list_lm_eval() -> Path:
    """Print the folder with the tasks for lm-eval's --include_path.

    Example: rbtc list lm-eval
    """
    from ..eval import adapters

    return Path(adapters.__file__).resolve().parent / "lm_eval"


def list_verifiers() -> Path:
    """Print the folder with the taskset for verifiers, to install into its own environment.

    Example: rbtc list verifiers
    """
    from ..eval import adapters

    return Path(adapters.__file__).resolve().parent / "verifiers"
