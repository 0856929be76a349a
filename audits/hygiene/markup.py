"""HTML, scripts and templates: what a page would execute or render instead of showing it."""

import re
from collections.abc import Iterator

from .decoded import found, views

_TAGS = (
    "a abbr applet area article aside audio b base big blink blockquote body br button canvas center code "
    "col dd del details dialog div dl dt em embed fieldset font footer form frame frameset h1 h2 h3 h4 h5 h6 "
    "head header hr html i iframe img input ins kbd label legend li link main map mark marquee math meta "
    "meter nav noscript object ol optgroup option output p param picture pre progress q s samp script "
    "section select small source span strike strong style sub summary sup svg table tbody td template "
    "textarea tfoot th thead title tr track tt u ul var video wbr xml xmp"
)
_PATTERNS = (
    (("<",), rf"</?(?:{'|'.join(_TAGS.split())})(?=[\s/>])[^<>]{{0,200}}>?"),
    (("<!", "<?"), r"<!--|<!\[cdata\[|<!doctype|<!entity|<\?(?:php|xml|=)"),
    (("on",), r"(?<![a-z])on(?:error|load|click|focus|mouseover|toggle|submit|begin)\s{0,3}=\s{0,3}[\"'\w]"),
    (("script", "data:"), r"\b(?:java|vb)script\s{0,3}:|\bdata:(?:text/html|image/svg|application/)"),
    (("](",), r"!\[[^\]]{0,80}\]\(|\]\(\s{0,3}(?:https?|javascript|data|file):"),
    (("{%", "%}", "${", "#{", "<%"), r"\{%|%\}|\$\{jndi:|\$\{\{|#\{|<%"),
    (("\\",), r"\\(?:href|includegraphics|input|write18)\s{0,3}\{"),
)
_MARKUP = tuple((needles, re.compile(pattern)) for needles, pattern in _PATTERNS)


def markup(text: str) -> Iterator[str]:
    """Yields HTML, links, template and LaTeX commands (see `views` for the spellings that are tried)."""
    yield from found(_MARKUP, views(text))
