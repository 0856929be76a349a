"""The file fields of the submit page: they take what was uploaded to this server, and no other path."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import gradio as gr


def upload_field(label: str, elem_id: str) -> "gr.File":
    """gradio's file field, closed to paths and addresses that a visitor writes into an event by hand.

    gradio compares them with its upload folder only in apps that it launched itself
    (`processing_utils._check_allowed`, 6.31): in a mounted one it would copy any file of the machine into its
    cache, fetch any address, and hand a path that is marked as a stream on as it is. The field is closed by
    its attributes: gradio writes a file beside every module with a subclass.
    """
    import gradio as gr

    field = gr.File(label=label, elem_id=elem_id, height=150, min_width=320)
    preprocess = field.preprocess

    async def uploaded_later(given: Any) -> str | None:
        return uploaded(given)

    def checked(payload: Any) -> Any:
        uploaded(None if payload is None else payload.path)
        return preprocess(payload)

    closed = {
        "move_resource_to_block_cache": uploaded,
        "async_move_resource_to_block_cache": uploaded_later,
        "preprocess": checked,
    }
    for name, function in closed.items():
        setattr(field, name, function)
    return field


def uploaded(given: Any) -> str | None:
    """The path as given. Raises gr.Error for one that is not a file of the upload folder."""
    import gradio as gr
    from gradio.utils import get_upload_folder

    if given is None:
        return None
    path = Path(given).resolve()
    if not path.is_relative_to(Path(get_upload_folder()).resolve()) or not path.is_file():
        raise gr.Error("This file was not uploaded here: choose it again.", print_exception=False)
    return str(given)
