"""The images of docs/own.md: pictures of the report on the bundled support desk, made with Chromium.

    python scripts/report_images.py [DIR]    # default: docs/images

Follows the page's own commands in a folder of its own, then takes a picture of each part that is named below.
Needs Chromium (`apt-get install chromium fonts-dejavu-core`).
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

COMMANDS = (
    "init demo",
    "build --cases demo/cases.yaml --out bench",
    "eval bench --agent name-biased --out run",
    "eval bench --callable demo/agent.py:answer --model my-agent --out runs/mine",
    "report run runs/mine --out report",
)
PICTURES = {
    "own-report.png": (("answer",), "", (1200, 640)),
    "own-row.png": (("browser",), "#row=own__refund-broken%3A%3ACD", (1000, 760)),
}
"""By file: the sections that it shows, the address within the page, and the window's width and height."""

LIMIT = 150_000
"""Bytes of an image in the repository."""


def main() -> None:
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("no Chromium here: apt-get install chromium fonts-dejavu-core")
    out = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/images").resolve()
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for command in COMMANDS:
            words = [sys.executable, "-c", "from robustbench_tc.cli import main; main()", *command.split()]
            subprocess.run(words, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        page = Path(folder, "report", "report.html").read_text("utf-8")
        for name, (sections, part, (width, height)) in PICTURES.items():
            shown = Path(folder, f"{name}.html")
            shown.write_text(_only(page, sections), "utf-8")
            options = [
                "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
                "--disable-background-networking", "--disable-component-update", "--disable-sync",
                f"--user-data-dir={folder}/profile", "--virtual-time-budget=5000",
                f"--window-size={width},{height}", f"--screenshot={out / name}",
            ]  # fmt: skip
            subprocess.run(
                [browser, *options, shown.as_uri() + part], check=True, capture_output=True, timeout=120
            )
            size = (out / name).stat().st_size
            print(f"{out / name}: {size:,} bytes")  # noqa: T201
            if size > LIMIT:
                sys.exit(f"{name} is larger than {LIMIT:,} bytes: choose a smaller window")


def _only(page: str, sections: tuple[str, ...]) -> str:
    """The page with these sections alone: Chromium takes pictures of a page's beginning."""
    kept = "".join(f":not(#{one})" for one in sections)
    hidden = (
        f"<style>header, .gaps, main > details, main > section{kept} {{ display: none !important }}</style>"
    )
    page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page, count=1)  # it allows no more
    return page.replace("</head>", f"{hidden}</head>", 1)


if __name__ == "__main__":
    main()
