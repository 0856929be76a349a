"""The submit page: gradio for the upload and its form; what it says is our own escaped HTML.

No event waits for a score: one hands the upload to the desk, a timer asks how far it is.
"""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robustbench_tc.errors import UserError

from . import pages
from .account import Login
from .desk import Desk, steps_of
from .records import Step
from .refusal import Refused
from .submitting import LOCAL, Form, Progress, Submitter
from .upload import upload_field

if TYPE_CHECKING:
    import gradio as gr

TITLE = "Submit · RobustBench-TC leaderboard"

_NAMES = """() => {
  for (const [id, name] of [["predictions", "Predictions"], ["record", "Run record"]]) {
    const group = document.getElementById(id);
    group?.setAttribute("role", "group");
    group?.setAttribute("aria-label", name);
  }
}"""
"""gradio calls both upload buttons the same; the groups around them tell them apart for a screen reader."""

_EACH_S = 1.0
"""Seconds between two looks at an upload that waits."""

_NOT_STATED = "not stated"

_STAGES = {"waiting": "Waiting", "checking": "Checking", "scoring": "Scoring"}
"""Stages before the result, as the page names them."""


def page(
    desk: Desk, login: Login, asked: str, added: Callable[[], None], live: str | None = None
) -> "gr.Blocks":
    """The page; `asked` names the dataset version that is taken, `live` that of live runs. `added` is called
    after each submission."""
    import gradio as gr

    with gr.Blocks(title=TITLE, analytics_enabled=False, delete_cache=(600, 3600)) as demo:
        gr.HTML(pages.header("submit"), elem_id="top", padding=False)
        gr.HTML(
            pages.render("submit_intro.html.j2", asked=asked, live=live, limits=desk.limits), padding=False
        )
        signed_in = gr.HTML(visible=login == "hf", padding=False, elem_id="signed-in")
        with gr.Row():
            predictions = upload_field(
                "Predictions: predictions.parquet or .jsonl; of a live run journal.jsonl", "predictions"
            )
            record = upload_field("Run record: run.json; of a live run live_run.json", "record")
        fields = _form()
        check = gr.Button("Check and score", variant="primary", elem_id="check")
        report = gr.HTML(elem_id="report", padding=False)
        ticket = gr.State("")
        timer = gr.Timer(_EACH_S, active=False)
        listing = gr.Button("List it on the board", variant="primary", visible=False, elem_id="list")
        outcome = gr.HTML(elem_id="outcome", padding=False)
        acts = _Acts(desk, added)

        checks, looks, lists = _events(acts, login)
        if login == "hf":
            demo.load(_signed_in(), None, signed_in, api_visibility="private", queue=False)
        demo.load(None, None, None, js=_NAMES)
        said = [report, ticket, timer, listing, outcome]
        options = {"queue": False, "show_progress": "hidden"}  # the queue is the desk's
        check.click(checks, [predictions, record, *fields], said, api_name="check", **options)
        timer.tick(looks, [ticket], said, api_name="look", **options)
        listing.click(lists, [ticket], [outcome, listing, ticket], api_name="list", **options)
    return demo


def _events(acts: "_Acts", login: Login) -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    """What checks an upload, looks how far it is, and lists it. gradio fills in the request and the account
    by the types of parameters: one set of functions for each way to sign in."""
    import gradio as gr

    if login == "hf":

        def checks(request: gr.Request, profile: gr.OAuthProfile | None, *given: Any) -> Any:
            return acts.check(_who(profile, request), given)

        def looks(request: gr.Request, profile: gr.OAuthProfile | None, its_ticket: str) -> Any:
            return acts.look(_who(profile, request), its_ticket)

        def lists(request: gr.Request, profile: gr.OAuthProfile | None, its_ticket: str) -> Any:
            return acts.list(_who(profile, request), its_ticket)

        return checks, looks, lists

    def checks_here(request: gr.Request, *given: Any) -> Any:
        return acts.check(_local(request), given)

    def looks_here(request: gr.Request, its_ticket: str) -> Any:
        return acts.look(_local(request), its_ticket)

    def lists_here(request: gr.Request, its_ticket: str) -> Any:
        return acts.list(_local(request), its_ticket)

    return checks_here, looks_here, lists_here


def _signed_in() -> Callable[..., str]:
    """Says who is signed in."""
    import gradio as gr

    def who(profile: gr.OAuthProfile | None) -> str:
        return pages.render("signed_in.html.j2", user=None if profile is None else profile.username)

    return who


def closed_page(why: str) -> "gr.Blocks":
    """The page of a server that takes no submissions."""
    import gradio as gr

    with gr.Blocks(title=TITLE, analytics_enabled=False) as demo:
        gr.HTML(pages.header("submit"), elem_id="top", padding=False)
        gr.HTML(pages.render("closed.html.j2", why=why), padding=False)
    return demo


def _form() -> "list[gr.components.Component]":
    """The fields beside the files, in the order of `Form`."""
    import gradio as gr

    def text(elem_id: str, label: str, info: str, longest: int = 60) -> gr.Textbox:
        return gr.Textbox(label=label, info=info, max_length=longest, min_width=260, elem_id=elem_id)

    with gr.Row():
        name = text(
            "name", "Model name on the board", "Optional. Empty: the model of the run record.", longest=120
        )
        params = text(
            "params", "Parameters in billions", "Optional. Used where the name does not say (Qwen3-8B does)."
        )
    with gr.Row():
        card = text("card", "Model card", "Optional. ORG/NAME on the Hub, or an https address.", longest=300)
        licence = text("licence", "Licence", "Optional. Its SPDX id, such as apache-2.0.")
        weights = gr.Radio(
            ["open", "closed", _NOT_STATED],
            value=_NOT_STATED,
            label="Weights",
            info="Whether anybody can download them.",
            min_width=260,
            elem_id="weights",
        )
    with gr.Row():
        usd = "Optional. US dollars per million tokens; the board shows what 1,000 rows cost."
        price_in = text("price-in", "Price of prompt tokens", usd)
        price_out = text("price-out", "Price of completion tokens", usd)
    return [name, params, card, licence, weights, price_in, price_out]


class _Acts:
    """What the page's events do. Whatever goes wrong is a line on the page."""

    def __init__(self, desk: Desk, added: Callable[[], None]) -> None:
        self._desk = desk
        self._added = added

    def check(self, who: Submitter | None, given: Sequence[Any]) -> Any:
        """Hands an upload to the desk."""
        if who is None:
            return _refused("you are not signed in: sign in with Hugging Face above, then check again")
        upload, run, *typed = given
        name, params, card, licence, weights, price_in, price_out = (_text(one) for one in typed)
        form = Form(
            name=name,
            params=params,
            card=card,
            licence=licence,
            weights=None if weights == _NOT_STATED else weights,
            price_in=price_in,
            price_out=price_out,
        )
        try:
            ticket = self._desk.place(who, Path(upload) if upload else None, Path(run) if run else None, form)
        except Refused as refusal:
            return _steps(steps_of(refusal))
        except Exception:  # nothing of the server's inside
            return _refused(_BROKEN, "score")
        return self.look(who, ticket)

    def look(self, who: Submitter | None, ticket: str) -> Any:
        """How far an upload is, and at the end the result."""
        if who is None or not ticket:
            return _refused("you are not signed in any more: sign in above, then check again")
        try:
            now = self._desk.progress(who, ticket)
            if now.stage != "done":
                return _said(_stage(now), ticket, ask_again=True)
            checked = self._desk.result(who, ticket)
        except Refused as refusal:
            return _steps(steps_of(refusal))
        except Exception:
            return _refused(_BROKEN, "score")
        passed = checked.submission is not None and checked.refused is None
        said = pages.report(checked.steps, checked.submission, checked.entry, checked.claims, checked.live)
        return _said(said, ticket if passed else "", listable=passed)

    def list(self, who: Submitter | None, ticket: str) -> Any:
        """Puts a scored upload on the board."""
        import gradio as gr

        try:
            if who is None:
                raise Refused("quota", "you are not signed in: sign in with Hugging Face above, then list it")
            made = self._desk.list(who.user, ticket)
            self._added()
        except UserError as error:
            return pages.refused(str(error)), gr.Button(visible=True), ticket
        except Exception:
            said = "the server could not list this submission: try again in a moment"
            return pages.refused(said), gr.Button(visible=True), ticket
        return pages.listed(made), gr.Button(visible=False), ""


_BROKEN = "the server could not check this upload: try again, and tell the maintainers if it stays so"


def _said(report: str, ticket: str, *, ask_again: bool = False, listable: bool = False) -> Any:
    import gradio as gr

    return report, ticket, gr.Timer(active=ask_again), gr.Button(visible=listable), ""


def _refused(line: str, step: str = "quota") -> Any:
    return _steps((Step(step, False, line),))


def _steps(steps: Sequence[Step]) -> Any:
    return _said(pages.report(steps, None, None, None), "")


def _stage(now: Progress) -> str:
    """The stages with the one that it is in. Spoken anew by a screen reader whenever the sentence changes, so
    the estimate is rounded."""
    says = _STAGES[now.stage] if now.place is None else f"Waiting, place {now.place} in the queue"
    if now.seconds is not None:
        fives = max(5, 5 * math.ceil(now.seconds / 5))
        about = f"{fives} seconds" if fives < 100 else f"{math.ceil(now.seconds / 60)} minutes"
        says += f", about {about} until the result"
    return pages.render(
        "stage.html.j2",
        stages=[*_STAGES.values(), "Result"],
        at=list(_STAGES).index(now.stage),
        says=f"{says}.",
    )


def _text(typed: Any) -> str:
    return str(typed or "")[:1000]


def _local(request: Any) -> Submitter:
    return Submitter(LOCAL, _address(request))


def _who(profile: Any, request: Any) -> Submitter | None:
    """The account that is signed in, with the organisations that it let the Space know of."""
    if profile is None:
        return None
    orgs = profile.get("orgs") if isinstance(profile, dict) else None
    found = [one.get("preferred_username") for one in orgs or () if isinstance(one, dict)]
    return Submitter(
        str(profile.username), _address(request), tuple(name for name in found if isinstance(name, str))
    )


def _address(request: Any) -> str:
    return str(request.client.host) if request is not None and request.client else ""
