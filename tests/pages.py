"""A page as the standard library's parser reads it."""

from html.parser import HTMLParser

VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())


class Page(HTMLParser):
    """Tags that are open at the end, what is loaded, linked, run and styled, and the words that are seen."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.scripts: dict[str, list[str]] = {}
        """Type of a script element → what stands in those of it."""
        self.styles: list[str] = []
        self.inline: list[str] = []
        """Attributes that would run or style something."""
        self.policy = ""
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = {name: value or "" for name, value in attrs}
        self.tags.add(tag)
        self.ids.add(said.get("id", ""))
        if tag == "script":
            self.scripts.setdefault(said.get("type", ""), []).append("")
        if said.get("http-equiv") == "Content-Security-Policy":
            self.policy = said["content"]
        self.inline += [name for name in said if name.startswith("on") or name == "style"]
        addresses = {name: said[name] for name in ("src", "href", "action") if name in said}
        for name, address in addresses.items():
            (self.loads if name == "src" or tag == "link" else self.links).append(address)
        if tag not in VOID:
            self.open.append(tag)
        self._kind = said.get("type", "")

    def handle_data(self, data: str) -> None:
        tag = self.open[-1] if self.open else ""
        if tag == "script":
            self.scripts[self._kind][-1] += data
        else:
            (self.styles if tag == "style" else self.words).append(data)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    @property
    def text(self) -> str:
        """What is seen, words one space apart."""
        return " ".join(" ".join(self.words).split())
