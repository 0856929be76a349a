"""A toy file system, written from docs/worlds.md alone."""

from typing import Annotated

from robustbench_tc.worlds.base import Failure, Task, Turn, World, call, read, write

Path = Annotated[str, "The file's path, beginning with /."]


class Files(World):
    """Text files by path."""

    name = "files"

    @read
    def list_files(self, folder: Annotated[str, "The folder's path."] = "/") -> list[dict[str, object]]:
        """Lists the files below a folder with their sizes."""
        below = folder.rstrip("/") + "/"
        return [
            {"path": path, "size": len(text)}
            for path, text in sorted(self.data["files"].items())
            if path.startswith(below)
        ]

    @read
    def read_file(self, path: Path) -> dict[str, str]:
        """Shows what is in a file."""
        return {"path": path, "text": self._text(path)}

    @write()
    def append_line(self, path: Path, line: Annotated[str, "The line's text."]) -> dict[str, object]:
        """Adds a line at the end of a file, which begins empty where there is none."""
        if not path.startswith("/") or "\n" in line:
            raise Failure("a path begins with /, and a line has no line break")
        text = self.data["files"].get(path, "") + line + "\n"
        self.data["files"][path] = text
        return {"path": path, "size": len(text)}

    @write(idempotent=True, undo="restore_file")
    def delete_file(self, path: Path) -> dict[str, str]:
        """Moves a file into the bin and gives the number it has there."""
        text = self._text(path)
        number = self.new_id("T-")
        del self.data["files"][path]
        self.data["bin"][number] = {"path": path, "text": text}
        return {"bin_number": number, "path": path}

    @write(idempotent=True)
    def restore_file(self, bin_number: Annotated[str, "The number in the bin."]) -> dict[str, str]:
        """Puts a file from the bin back in its place."""
        if bin_number not in self.data["bin"]:
            raise Failure(f"there is nothing in the bin as {bin_number!r}")
        kept = self.data["bin"].pop(bin_number)
        self.data["files"][kept["path"]] = kept["text"]
        return {"path": kept["path"]}

    def _text(self, path: str) -> str:
        if path not in self.data["files"]:
            raise Failure(f"there is no file {path!r}")
        return str(self.data["files"][path])


WORLD = Files

DISK = {
    "files": {
        "/notes/monday.txt": "buy paint\ncall Ruth\n",
        "/notes/tuesday.txt": "return the ladder\n",
        "/drafts/letter.txt": "Dear Ruth,\n",
    },
    "bin": {},
}

TASKS = [
    Task(
        "files_1",
        DISK,
        [
            Turn(
                'Add the line "water the plants" to my notes for Tuesday.',
                [
                    call("list_files", folder="/notes"),
                    call("append_line", path="/notes/tuesday.txt", line="water the plants"),
                ],
            )
        ],
    ),
    Task(
        "files_2",
        DISK,
        [
            Turn(
                "Which of my two notes has Ruth in it? Delete that one.",
                [
                    call("list_files", folder="/notes"),
                    call("read_file", path="/notes/monday.txt"),
                    call("read_file", path="/notes/tuesday.txt"),
                    call("delete_file", path="/notes/monday.txt"),
                ],
            ),
            Turn("No, I need it after all. Put it back.", [call("restore_file", bin_number="T-1926")]),
            Turn(
                'And write "P.S. See you on Friday." under /drafts/letter.txt.',
                [call("append_line", path="/drafts/letter.txt", line="P.S. See you on Friday.")],
            ),
        ],
        seed=2,
    ),
]
