"""What was validated as a Great Expectations project: suites, definitions, data, a checkpoint, data docs.

Made to lie under `audit/` of a build and to be used as its users know it, from inside that folder:

    context = great_expectations.get_context(mode="file")    # in audit/, which holds gx/
    context.checkpoints.get("gate").run()

Identifiers are made from what they identify and no file holds a time, so the same audit gives the same bytes.
"""

import re
import uuid
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory

from robustbench_tc.io import templates

from .gx import NUMBERS, Validated, quiet, result_format, suite_of

STYLES = "static/data_docs.css"

CHECKPOINT = "gate"

DATA = "gx/data"
"""Where the tables lie, seen from `audit/`."""

_KEPT = (
    "gx/great_expectations.yml",
    *("gx/expectations/", "gx/validation_definitions/", "gx/checkpoints/", f"{DATA}/"),
)
"""Of what Great Expectations writes, what others need; the rest are caches and stores of a working copy."""

_UUID = re.compile(rb"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_NAMESPACE = uuid.UUID("6f6a0d5e-6a86-5c5e-9b1f-7a1d2c3e4f50")

_ABOUT_NOBODY = re.compile(rb"^(?:#.*|config_variables_file_path:.*|data_context_id:.*)\n", re.MULTILINE)
"""Lines of the configuration that explain it to a newcomer, or identify an installation."""


def files(validated: Sequence[Validated], title: str) -> dict[str, bytes]:
    """Name → bytes of every file of the project and of its data docs; `title` says of what they are."""
    with TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        _write(root, validated)
        found = {
            path.relative_to(root).as_posix(): path.read_bytes()
            for path in sorted(root.rglob("*"))
            if path.is_file() and path.name[0] != "." and path.relative_to(root).as_posix().startswith(_KEPT)
        }
        plain = {name: data.replace(str(root).encode() + b"/", b"") for name, data in found.items()}
    known: dict[bytes, bytes] = {}
    same = {
        name: data
        if name.startswith(DATA)
        else _UUID.sub(
            # The identifier that the n-th one gets in every audit.
            lambda found: known.setdefault(
                found.group(), str(uuid.uuid5(_NAMESPACE, str(len(known)))).encode()
            ),
            data,
        )
        for name, data in plain.items()
    }
    same["gx/great_expectations.yml"] = _ABOUT_NOBODY.sub(b"", same["gx/great_expectations.yml"]).lstrip()
    return same | {f"data_docs/{name}": data for name, data in pages(validated, title).items()}


def _write(root: Path, validated: Sequence[Validated]) -> None:
    """A file context of Great Expectations with everything but results."""
    gx = quiet()
    from great_expectations.core import ValidationDefinition

    context = gx.get_context(mode="file", project_root_dir=root)
    (root / DATA).mkdir()
    build = context.data_sources.add_pandas_filesystem("build", base_directory=root / DATA)
    definitions = []
    for suite, table, rules, _ in validated:
        name = f"{suite}.csv.gz"
        table.to_csv(root / DATA / name, index=False, compression={"method": "gzip", "mtime": 0})
        asset = build.add_csv_asset(
            suite,
            compression="gzip",
            keep_default_na=False,  # `NA` is a text
            na_values="",
            dtype={column: "float64" if column in NUMBERS else "str" for column in table.columns},
        )
        definition = ValidationDefinition(
            name=suite,
            data=asset.add_batch_definition_path("whole", name),
            suite=context.suites.add(suite_of(suite, rules)),
        )
        definitions.append(context.validation_definitions.add(definition))
    context.checkpoints.add(
        gx.Checkpoint(name=CHECKPOINT, validation_definitions=definitions, result_format=result_format())
    )
    context.variables.analytics_enabled = False
    context.variables.save()


def pages(validated: Sequence[Validated], title: str) -> dict[str, bytes]:
    """The data docs: an index, a page of results and one of expectations per suite, the style sheet.

    Great Expectations' own pages fetch styles, scripts and fonts from several hosts. These need neither
    network nor script; whoever wants the others makes them from the project with `build_data_docs()`.
    """
    package = "robustbench_tc.audits.expectations"
    template = templates.environment(package).get_template("data_docs.html.j2")
    made = {STYLES: resources.files(package).joinpath("data_docs.css").read_bytes()}
    made["index.html"] = template.render(title=title, page="index", up="", validated=validated).encode()
    for one in validated:
        for page in ("validations", "expectations"):
            shown = template.render(title=f"{one.suite}: {page}, {title}", page=page, up="../", one=one)
            made[f"{page}/{one.suite}.html"] = shown.encode()
    return made
