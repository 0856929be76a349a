"""`rbtc leaderboard submit`: a run to a board, over its API.

Nothing is remembered on this machine: the board knows an upload by its sha256, so the same command goes on
after whatever ended it, and finds a result that is there already.
"""

from collections.abc import Callable
from hashlib import file_digest
from pathlib import Path
from typing import Any

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.eval import inputs
from robustbench_tc.eval.record import RunRecord

from . import live_client
from .checks import Asked, Trail, check
from .client_http import AGAIN, WAITS, Answered, Connection, Dropped
from .limits import Limits
from .names import shown
from .records import Checked, Submission
from .refusal import STEPS, Refused
from .submitting import Form, stated

PART = 1024 * 1024
"""Bytes of one request."""

TRIES = 5
"""Times that a complete upload is handed over: a board that was started anew has forgotten what waited."""

LOOK_S = (0.5, 5.0)
"""Seconds between two looks at an upload that waits: a fifth of what is left, within these."""


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """How far a submission is."""

    name: str
    """checking here, uploading, waiting, checking, scoring or done."""
    sent: int = 0
    """Bytes that the board has, while it uploads."""
    total: int = 0
    place: int | None = None
    """In the board's queue; 1 is next."""
    seconds: float | None = None
    """Until the result, as the board estimates it from measured times."""


class Submitted(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a submission."""

    checked: Checked
    """The board's checks, and the result with its intervals."""
    submission: Submission | None = None
    """As it is listed; None where it was not to be listed."""
    page: str | None = None
    """Its address on the board."""
    not_checked_here: str | None = None
    """Why nothing was checked before the upload."""


class NotTaken(UserError):
    """A run that the board, or the checks before it, refuse. `checked` has every step."""

    def __init__(self, checked: Checked, where: str) -> None:
        failed = checked.refused
        super().__init__(
            f"not accepted ({where}): " + (f"{STEPS[failed.code]}: {failed.text}" if failed else "no result")
        )
        self.checked = checked


class _State(msgspec.Struct, kw_only=True):
    """The board's answer on an upload."""

    id: str
    stage: str
    received: dict[str, int]
    place: int | None = None
    seconds: float | None = None
    result: Checked | None = None
    listable: bool = False


def submit(
    run: str | Path,
    url: str,
    *,
    model: str | None = None,
    params: float | None = None,
    card: str | None = None,
    licence: str | None = None,
    weights: str | None = None,
    price: tuple[float, float] | None = None,
    record: Path | None = None,
    dataset: str | None = None,
    token: str | None = None,
    confirm: Callable[[Checked], bool] = lambda checked: True,
    signing_in: Callable[[str], bool] = lambda url: True,
    progress: Callable[[Stage], None] = lambda stage: None,
) -> Submitted:
    """`rbtc leaderboard submit`: uploads the run folder `run` to the board at `url`, and lists it.

    A folder of `rbtc live run` is submitted as a live run. What can be checked here is checked first, against
    the run's dataset or `dataset`. `confirm` gets the
    board's result and says whether it is listed; by default it is. `params` is in billions, `price` in USD
    per million prompt and completion tokens. `token` is one of Hugging Face, by default the machine's; it is
    sent to boards on a Space only, after `signing_in` has agreed to the board's address.

    The same call goes on where an earlier one was ended. Raises UserError in one line; for a run that is
    refused it is a NotTaken, which has every check.
    """
    form = Form(
        name=model,
        params=None if params is None else f"{params:g}",
        card=card,
        licence=licence,
        weights=weights,
        price_in=None if price is None else f"{price[0]:g}",
        price_out=None if price is None else f"{price[1]:g}",
    )
    stated(form)  # refused here in the board's words
    live = live_client.files_of(Path(run).expanduser(), record)
    upload, its_record = live or _files(Path(run).expanduser(), record)
    _refuse_sizes(upload, its_record)
    connection = Connection(url)
    about = connection.about()
    takes = about["submissions"]
    if not isinstance(takes, dict) or takes.get("open") is not True:
        raise UserError(f"the board at {connection.url} takes no submissions: {shown(str(_why(takes)), 300)}")
    if live is not None:
        live_client.refuse_other_dataset(its_record, takes, connection.url)
    else:
        _same_dataset(its_record, takes, connection.url)
    progress(Stage(name="checking here"))
    unchecked = (_check_live if live else _check_here)(upload, its_record, model, dataset)
    if takes.get("login") == "hf":
        connection.sign_in(_token(token))
        if not signing_in(connection.url):
            raise UserError(f"not signed in at {connection.url}: nothing was sent")
    sending = _Sending(connection, {"predictions": upload, "run": its_record}, form, progress)
    state = sending.until_done()
    checked = state.result
    if checked is None or not state.listable:
        raise NotTaken(checked or Checked(steps=()), "by the board")
    if not confirm(checked):
        return Submitted(checked=checked, not_checked_here=unchecked)
    listed = connection.ask("POST", f"/submissions/{state.id}/list", {})
    submission = _decoded(listed.get("submission"), Submission, connection)
    return Submitted(
        checked=checked,
        submission=submission,
        page=f"{connection.url}{submission.page}",
        not_checked_here=unchecked,
    )


class _Sending:
    """One upload, however often the connection or the board goes away meanwhile."""

    def __init__(
        self,
        connection: Connection,
        files: dict[str, Path],
        form: Form,
        progress: Callable[[Stage], None],
    ) -> None:
        self._connection = connection
        self._files = files
        self._progress = progress
        announced = {name: {"bytes": size, "sha256": _sha256(path)} for name, path, size in _sized(files)}
        self._announced = {"files": announced, "form": msgspec.to_builtins(form)}
        self._total = sum(size for _, _, size in _sized(files))

    def until_done(self) -> _State:
        state, handed = self._announce(), 0
        while state.stage != "done":
            try:
                if state.stage == "uploading":
                    if handed == TRIES:
                        raise UserError(
                            f"the board at {self._connection.url} did not take the upload in {TRIES} "
                            f"tries: {AGAIN}"
                        )
                    self._send(state)
                    handed += 1
                    state = self._read(self._connection.ask("POST", f"/submissions/{state.id}/finish", {}))
                    continue
                self._progress(Stage(name=state.stage, place=state.place, seconds=state.seconds))
                low, high = LOOK_S
                self._connection.sleep(min(high, max(low, (state.seconds or 0) / 5)))
                state = self._look(state.id)
            except Answered as answer:
                if answer.status == 404 and handed < TRIES:  # it was thrown away meanwhile
                    handed += 1
                    state = self._announce()
                elif answer.status in (409, 422) and "received" in answer.said and handed < TRIES:
                    state = self._look(state.id)
                else:
                    raise
        self._progress(Stage(name="done"))
        return state

    def _announce(self) -> _State:
        return self._read(self._connection.ask("POST", "/submissions", self._announced))

    def _look(self, upload_id: str) -> _State:
        return self._read(self._connection.ask("GET", f"/submissions/{upload_id}"))

    def _send(self, state: _State) -> None:
        """What the board has not yet, part by part."""
        there = dict(state.received)
        for name, path, size in _sized(self._files):
            waits = iter(WAITS)
            with path.open("rb") as file:
                while (offset := there.get(name, 0)) < size:
                    self._progress(Stage(name="uploading", sent=sum(there.values()), total=self._total))
                    file.seek(offset)
                    try:
                        there[name] = self._part(state.id, name, file.read(PART), offset)
                        waits = iter(WAITS)
                    except Dropped as dropped:
                        self._connection.wait(dropped, next(waits, None))
                        now = self._look(state.id)
                        if now.stage != "uploading":
                            return
                        there = dict(now.received)
        self._progress(Stage(name="uploading", sent=self._total, total=self._total))

    def _part(self, upload_id: str, name: str, part: bytes, offset: int) -> int:
        """How much the board has after it. Raises Dropped where that is no more than before."""
        if not part:
            raise UserError(f"{self._files[name]} has become shorter while it was sent: {AGAIN}")
        try:
            said = self._connection.once(
                "PUT", f"/submissions/{upload_id}/{name}", part, "application/octet-stream", offset=offset
            )
        except Answered as answer:
            if answer.status != 409 or not isinstance(answer.said.get("received"), int):
                raise
            said = answer.said
        received = said.get("received") if isinstance(said, dict) else None
        if not isinstance(received, int) or received == offset:
            raise Dropped("does not take what is sent")
        return received

    def _read(self, said: Any) -> _State:
        found: _State = _decoded(said, _State, self._connection)
        return found


def _decoded(said: Any, kind: Any, connection: Connection) -> Any:
    try:
        return msgspec.convert(said, kind)
    except (msgspec.ValidationError, AttributeError):
        raise UserError(
            f"the board at {connection.url} answers in another form: it may be of another version of this "
            "package"
        ) from None


def _files(run: Path, record: Path | None) -> tuple[Path, Path]:
    upload = run / "predictions.parquet" if run.is_dir() else run
    if not upload.is_file():
        raise UserError(f"no predictions at {upload}: name a run folder, or a .parquet or .jsonl file")
    its_record = record or upload.with_name("run.json")
    if not its_record.is_file():
        raise UserError(f"no run record at {its_record}: name it with --record")
    return upload, its_record


def _refuse_sizes(upload: Path, its_record: Path) -> None:
    for path, bound in ((upload, Limits().file_bytes), (its_record, Limits().record_bytes)):
        if not 0 < path.stat().st_size <= bound:
            raise UserError(f"{path} has {path.stat().st_size:,} bytes: 1 to {bound:,} are taken")


def _same_dataset(record: Path, takes: dict[str, Any], url: str) -> None:
    """Refused before anything is sent, in words of both sides."""
    try:
        run = msgspec.json.decode(record.read_bytes(), type=RunRecord)
    except (OSError, ValueError, RecursionError):
        raise UserError(
            f"{record} is no run record: name the run.json that lies beside the predictions"
        ) from None
    theirs = str(takes.get("fingerprint"))
    if run.settings.fingerprint != theirs:
        raise UserError(
            f"the run is of dataset version {shown(run.dataset_version or 'unversioned')} "
            f"({shown(run.settings.fingerprint, 8)}), the board at {url} takes version "
            f"{shown(str(takes.get('dataset_version')))} ({shown(theirs, 8)}): evaluate on that version"
        )


def _check_here(upload: Path, record: Path, model: str | None, dataset: str | None) -> str | None:
    """The board's checks before its scoring. Raises NotTaken; the reason where they cannot be had here."""
    run = msgspec.json.decode(record.read_bytes(), type=RunRecord)
    try:
        asked = Asked.of(
            inputs.load(dataset or run.dataset, revision=None if dataset else run.dataset_revision)
        )
    except UserError as error:
        if dataset is not None:
            raise
        return str(error)
    if asked.fingerprint() != run.settings.fingerprint:
        return f"{shown(run.dataset)} is not the dataset of the run (any more): name it with --dataset"
    trail = Trail()
    try:
        check(upload, record, asked, name=model, limits=Limits(), trail=trail)
    except Refused as refusal:
        raise NotTaken(Checked(steps=trail.refused(refusal)), "before the upload") from None
    return None


def _check_live(upload: Path, record: Path, model: str | None, dataset: str | None) -> str | None:
    """The same for a live run."""
    found = live_client.check_here(upload, record, model, dataset)
    if isinstance(found, Checked):
        raise NotTaken(found, "before the upload")
    return found


def _token(given: str | None) -> str:
    from huggingface_hub import get_token

    found = given or get_token()
    if not found:
        raise UserError(
            "this board knows people by their Hugging Face account: sign in with `hf auth login`, or set "
            "HF_TOKEN (a token without any permission is enough)"
        )
    return found


def _why(takes: Any) -> Any:
    return takes.get("closed") if isinstance(takes, dict) else takes


def _sized(files: dict[str, Path]) -> list[tuple[str, Path, int]]:
    return [(name, path, path.stat().st_size) for name, path in files.items()]


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
