"""The submit page: gradio for the upload; what it says is our own escaped HTML.

No event waits: an upload is placed at the desk, and a timer asks how far it is. So nothing goes through
gradio's queue, which anybody could fill.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from robustbench_tc.errors import UserError

from . import pages
from .desk import Desk, steps_of
from .records import Checked, Step
from .refusal import Refused
from .submitting import LOCAL, Form, Progress, Submitter
from .upload import upload_field

if TYPE_CHECKING:
    import gradio as gr

Login = Literal["local", "hf"]
"""local: everybody is `local`, for a laptop. hf: the account that is signed in on the Space."""

TITLE = "Submit · RobustBench-TC leaderboard"

_NAMES = """() => {
  for (const [id, name] of [["predictions", "Predictions"], ["record", "Run record"]]) {
    const group = document.getElementById(id);
    group?.setAttribute("role", "group");
    group?.setAttribute("aria-label", name);
  }
}"""
"""gradio calls both upload buttons the same; the groups around them tell them apart for a screen reader."""

_POLL_S = 1.0


def page(desk: Desk, login: Login, asked: str, added: Callable[[], None]) -> "gr.Blocks":
    """The page; `asked` names the dataset version that is taken. `added` is called after each submission."""
    import gradio as gr

    limits = desk.limits
    with gr.Blocks(title=TITLE, analytics_enabled=False, delete_cache=(600, 3600)) as demo:
        gr.HTML(pages.header("submit"), elem_id="top", padding=False)
        gr.HTML(pages.render("submit_intro.html.j2", asked=asked, limits=limits), padding=False)
        signed_in = gr.HTML(visible=login == "hf", padding=False, elem_id="signed-in")
        with gr.Row():
            predictions = upload_field("Predictions: predictions.parquet or .jsonl", "predictions")
            record = upload_field("Run record: run.json", "record")
        with gr.Row():
            name = gr.Textbox(
                label="Model name on the board",
                info="Optional. Empty: the model of the run record.",
                max_length=120,
                min_width=320,
                elem_id="name",
            )
            params = gr.Textbox(
                label="Parameters in billions",
                info="Optional. Used where the name does not say (Qwen3-8B does).",
                max_length=20,
                min_width=320,
                elem_id="params",
            )
        check = gr.Button("Check and score", variant="primary", elem_id="check")
        report = gr.HTML(elem_id="report", padding=False)
        ticket = gr.State("")
        listing = gr.Button("List it on the board", variant="primary", visible=False, elem_id="list")
        outcome = gr.HTML(elem_id="outcome", padding=False)

        timer = gr.Timer(_POLL_S, active=False)

        def answer(said: str, its_ticket: str, *, listable: bool = False, waits: bool = False) -> Any:
            return said, its_ticket, gr.Button(visible=listable), gr.Timer(active=waits), ""

        def look_as(who: Submitter | None, its_ticket: str) -> Any:
            found = _looked(desk, who, its_ticket)
            if isinstance(found, Checked):
                return answer(_report(found), its_ticket, listable=found.refused is None)
            return answer(pages.render("waiting.html.j2", progress=found), its_ticket, waits=True)

        def place_as(who: Submitter | None, upload: Any, run: Any, typed: Any, size: Any) -> Any:
            form = Form(name=str(typed or "")[:200], params=str(size or "")[:40])
            placed = _placed(desk, who, upload, run, form)
            return answer(_report(placed), "") if isinstance(placed, Checked) else look_as(who, placed)

        def list_as(who: Submitter | None, its_ticket: str) -> Any:
            said, done = _listed(desk, who, its_ticket)
            if done:
                added()
            return said, gr.Button(visible=not done), "" if done else its_ticket

        # gradio fills in request and account by the type of a parameter: one set of functions for each way.
        if login == "hf":

            def places(
                a: Any, b: Any, c: Any, d: Any, request: gr.Request, profile: gr.OAuthProfile | None
            ) -> Any:
                return place_as(_submitter(request, profile), a, b, c, d)

            def looks(its_ticket: str, request: gr.Request, profile: gr.OAuthProfile | None) -> Any:
                return look_as(_submitter(request, profile), its_ticket)

            def lists(its_ticket: str, request: gr.Request, profile: gr.OAuthProfile | None) -> Any:
                return list_as(_submitter(request, profile), its_ticket)

            def who(profile: gr.OAuthProfile | None) -> str:
                user = None if profile is None else profile.username
                return pages.render("signed_in.html.j2", user=user)

            demo.load(who, None, signed_in, api_visibility="private", queue=False)
        else:

            def places(a: Any, b: Any, c: Any, d: Any, request: gr.Request) -> Any:  # type: ignore[misc]
                return place_as(_local(request), a, b, c, d)

            def looks(its_ticket: str, request: gr.Request) -> Any:  # type: ignore[misc]
                return look_as(_local(request), its_ticket)

            def lists(its_ticket: str, request: gr.Request) -> Any:  # type: ignore[misc]
                return list_as(_local(request), its_ticket)

        demo.load(None, None, None, js=_NAMES)
        told = [report, ticket, listing, timer, outcome]
        check.click(places, [predictions, record, name, params], told, api_name="check", queue=False)
        timer.tick(looks, [ticket], told, api_name="look", queue=False, show_progress="hidden")
        listing.click(lists, [ticket], [outcome, listing, ticket], api_name="list", queue=False)
    return demo


def closed_page(why: str) -> "gr.Blocks":
    """The page of a server that takes no submissions."""
    import gradio as gr

    with gr.Blocks(title=TITLE, analytics_enabled=False) as demo:
        gr.HTML(pages.header("submit"), elem_id="top", padding=False)
        gr.HTML(pages.render("closed.html.j2", why=why), padding=False)
    return demo


def _local(request: Any) -> Submitter:
    return Submitter(LOCAL, request.client.host)


def _submitter(request: Any, profile: Any) -> Submitter | None:
    if profile is None:
        return None
    orgs = [
        str(one.get("preferred_username") or "") for one in profile.get("orgs") or () if isinstance(one, dict)
    ]
    return Submitter(str(profile.username), request.client.host, tuple(filter(None, orgs)))


def _report(checked: Checked) -> str:
    return pages.report(checked.steps, checked.submission, checked.entry, checked.claims)


_NOBODY = Checked(
    steps=(Step("quota", False, "you are not signed in: sign in with Hugging Face above, then check again"),)
)


def _placed(desk: Desk, who: Submitter | None, upload: Any, run: Any, form: Form) -> str | Checked:
    """The ticket of an upload, or why it is not taken."""
    if who is None:
        return _NOBODY
    try:
        return desk.place(who, Path(upload) if upload else None, Path(run) if run else None, form)
    except Refused as refusal:
        return Checked(steps=steps_of(refusal))
    except Exception:  # whatever it is, the visitor gets a line and nothing of the server's inside
        said = "the server could not take this upload: try again, and tell the maintainers if it stays so"
        return Checked(steps=(Step("score", False, said),))


def _looked(desk: Desk, who: Submitter | None, ticket: str) -> Progress | Checked:
    """How far an upload is, or its answer."""
    if who is None:
        return _NOBODY
    try:
        found = desk.progress(who, ticket)
        return found if found.stage != "done" else desk.result(who, ticket, 0)
    except Refused as refusal:
        return Checked(steps=steps_of(refusal))


def _listed(desk: Desk, who: Submitter | None, given: str) -> tuple[str, bool]:
    """What to say, and whether it is listed."""
    if who is None:
        return pages.refused("you are not signed in: sign in with Hugging Face above, then list it"), False
    try:
        return pages.listed(desk.list(who.user, given)), True
    except UserError as error:
        return pages.refused(str(error)), False
    except Exception:
        return pages.refused("the server could not list this submission: try again in a moment"), False
