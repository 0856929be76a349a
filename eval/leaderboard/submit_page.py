"""The submit page: gradio for the upload and the queue; what it says is our own escaped HTML."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from robustbench_tc.errors import UserError

from . import pages
from .desk import Desk
from .records import Checked, Step
from .upload import upload_field

if TYPE_CHECKING:
    import gradio as gr

Login = Literal["local", "hf"]
"""local: everybody is `local`, for a laptop. hf: the account that is signed in on the Space."""

LOCAL = "local"
TITLE = "Submit · RobustBench-TC leaderboard"

_NAMES = """() => {
  for (const [id, name] of [["predictions", "Predictions"], ["record", "Run record"]]) {
    const group = document.getElementById(id);
    group?.setAttribute("role", "group");
    group?.setAttribute("aria-label", name);
  }
}"""
"""gradio calls both upload buttons the same; the groups around them tell them apart for a screen reader."""

_AT_A_TIME = 2
"""Uploads scored at once; the others wait in gradio's queue and see their place."""


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

        def check_as(user: str | None, *given: Any) -> Any:
            checked, its_ticket = _checked(desk, user, *given)
            said = pages.report(checked.steps, checked.submission, checked.entry, checked.claims)
            return said, its_ticket or "", gr.Button(visible=its_ticket is not None), ""

        def list_as(user: str | None, its_ticket: str) -> Any:
            said, done = _listed(desk, user, its_ticket)
            if done:
                added()
            return said, gr.Button(visible=not done), "" if done else its_ticket

        # gradio fills in the account by the type of a parameter: hence one pair of functions for each way.
        if login == "hf":

            def checks(a: Any, b: Any, c: Any, d: Any, profile: gr.OAuthProfile | None) -> Any:
                return check_as(_user(profile), a, b, c, d)

            def lists(its_ticket: str, profile: gr.OAuthProfile | None) -> Any:
                return list_as(_user(profile), its_ticket)

            def who(profile: gr.OAuthProfile | None) -> str:
                return pages.render("signed_in.html.j2", user=_user(profile))

            demo.load(who, None, signed_in, api_visibility="private", queue=False)
        else:

            def checks(a: Any, b: Any, c: Any, d: Any) -> Any:  # type: ignore[misc]
                return check_as(LOCAL, a, b, c, d)

            def lists(its_ticket: str) -> Any:  # type: ignore[misc]
                return list_as(LOCAL, its_ticket)

        demo.load(None, None, None, js=_NAMES)
        check.click(
            checks,
            [predictions, record, name, params],
            [report, ticket, listing, outcome],
            show_progress_on=[report],
            api_name="check",
            concurrency_limit=_AT_A_TIME,
            concurrency_id="score",
        )
        listing.click(lists, [ticket], [outcome, listing, ticket], api_name="list", concurrency_limit=8)
    demo.queue(max_size=200, default_concurrency_limit=_AT_A_TIME)
    return demo


def closed_page(why: str) -> "gr.Blocks":
    """The page of a server that takes no submissions."""
    import gradio as gr

    with gr.Blocks(title=TITLE, analytics_enabled=False) as demo:
        gr.HTML(pages.header("submit"), elem_id="top", padding=False)
        gr.HTML(pages.render("closed.html.j2", why=why), padding=False)
    return demo


def _user(profile: Any) -> str | None:
    return None if profile is None else str(profile.username)


def _checked(
    desk: Desk, user: str | None, upload: str | None, run: str | None, typed: str, size: str
) -> tuple[Checked, str | None]:
    if user is None:
        said = "you are not signed in: sign in with Hugging Face above, then check again"
        return Checked(steps=(Step("quota", False, said),)), None
    try:
        return desk.check(
            user,
            Path(upload) if upload else None,
            Path(run) if run else None,
            name=str(typed or "")[:200],
            params=str(size or "")[:40],
        )
    except Exception:  # whatever it is, the visitor gets a line and nothing of the server's inside
        said = "the server could not check this upload: try again, and tell the maintainers if it stays so"
        return Checked(steps=(Step("score", False, said),)), None


def _listed(desk: Desk, user: str | None, given: str) -> tuple[str, bool]:
    """What to say, and whether it is listed."""
    if user is None:
        return pages.refused("you are not signed in: sign in with Hugging Face above, then list it"), False
    try:
        return pages.listed(desk.list(user, given)), True
    except UserError as error:
        return pages.refused(str(error)), False
    except Exception:
        return pages.refused("the server could not list this submission: try again in a moment"), False
