"""What every adapter needs of us: chosen rows, what is sent for them, and the verdict on what came back."""

from collections.abc import Sequence

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.eval import inputs, passes, predictions, prompts, wire
from robustbench_tc.eval.inputs import Names, selection_of
from robustbench_tc.eval.record import Answer, Mode, Settings, mode_of
from robustbench_tc.eval.score import judge
from robustbench_tc.schema import Json, Prediction, Sample, Verdict

KEY = "robustbench_tc"
"""Under which a log holds what is ours, of a task and of a sample."""


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """What a log has to say of its dataset, so that runs of different rows are never compared."""

    dataset: str
    dataset_version: str | None = None
    dataset_revision: str | None = None
    fingerprint: str
    mode: Mode = "fc"
    prompt_version: str
    selection: inputs.Selection = inputs.Selection()


class Bench:
    """Rows of a dataset, asked in one mode. `settings` has the model's name once that is known."""

    def __init__(
        self,
        dataset: str,
        *,
        revision: str | None = None,
        types: Names = (),
        sources: Names = (),
        samples: int | None = None,
        mode: str = "fc",
    ) -> None:
        """Raises UserError as `rbtc eval` does: for a folder that is no dataset, an unknown name, no row."""
        self.data = inputs.load_samples(dataset, revision=revision)
        self.selection = selection_of(types, sources, samples=samples)
        self.rows = inputs.select(self.data, self.selection)
        self.mode = mode_of(mode)
        self._by_id = {row.id: row for row in self.rows}
        self._anchors = self.data.anchors()
        self._fingerprint = self.data.fingerprint()

    @property
    def origin(self) -> Origin:
        """For the log."""
        return Origin(
            dataset=self.data.name,
            dataset_version=self.data.version,
            dataset_revision=self.data.revision,
            fingerprint=self._fingerprint,
            mode=self.mode,
            prompt_version=prompts.prompt_version(),
            selection=self.selection,
        )

    def settings(self, model: str) -> Settings:
        """How replies of that model are read."""
        return Settings(
            fingerprint=self._fingerprint,
            model=model,
            mode=self.mode,
            backend="import",
            decoding={},
            prompt_version=prompts.prompt_version(),
            selection=self.selection,
            repeat=1,
        )

    def row(self, row_id: str) -> Sample:
        """The row of that id. Raises UserError."""
        found = self._by_id.get(row_id)
        if found is None:
            raise UserError(f"{row_id!r} is not among the rows of {self.data.name} that were chosen")
        return found

    def anchor(self, row_id: str) -> Sample:
        """The clean row that the row of that id was made from."""
        return self._anchors[row_id]

    def identity(self, row: Sample) -> dict[str, Json]:
        """The row's columns of a prediction, in the words of a log: the pair key is `clean_id` and `type`."""
        return {
            "clean_id": row.clean_id,
            "type": row.type_code,
            "component": row.component,
            "source": row.source,
            "category": row.category,
            "sample_hash": self.data.hash_of(row.id),
        }

    def following(self, row: Sample, settings: Settings, answers: Sequence[Answer]) -> wire.Ask:
        """The request after these answers; the first where there is none."""
        said = passes.result_texts(row, settings, answers, self.data.results.get(row.clean_id, {}))
        return wire.following(row, self.mode, [(one.text, one.tool_calls) for one in answers], said)

    def prediction(self, row: Sample, settings: Settings, answers: Sequence[Answer]) -> Prediction:
        """One prediction from the answers to all passes."""
        digest = self.data.hash_of(row.id) or ""
        return predictions.combine(row, digest, settings, *answers)

    def verdict(self, found: Prediction) -> Verdict:
        """Our scorer's, as `rbtc score` makes it."""
        row = self.row(found.id)
        return judge(found, row, self._anchors[row.id])


def asked_once(row: Sample) -> bool:
    """Whether one request is all that a row needs: no error answers a call, no further turn follows."""
    return passes.most(row) == 1


def in_order(codes: Sequence[str]) -> tuple[str, ...]:
    """Types in the order of the tables, `clean` first."""
    there = set(codes)
    clean = (taxonomy.CLEAN,) if taxonomy.CLEAN in there else ()
    return (*clean, *(one.code for one in taxonomy.among(there)))
