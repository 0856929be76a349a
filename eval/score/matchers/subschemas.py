"""What a parameter's JSON Schema says of a value: its types, and the schemas of what lies inside it.

References, `allOf`, `anyOf` and `oneOf` are followed, within bounds: a schema may refer to itself.
"""

import re
from collections.abc import Iterator
from urllib.parse import unquote

from robustbench_tc.schema import Json

PARTS = 100
"""Schemas looked at behind one."""


def parts(schema: Json, root: Json) -> Iterator[dict[str, Json]]:
    """The schema and those that it is made of, each once; `root` is what its references point into."""
    left, seen = [schema], set[int]()
    while left and len(seen) < PARTS:
        one = left.pop()
        if not isinstance(one, dict) or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        for word in ("oneOf", "anyOf", "allOf"):
            inner = one.get(word)
            left += reversed(inner) if isinstance(inner, list) else ()
        if "$ref" in one:
            left.append(pointed_at(one["$ref"], root))


def pointed_at(reference: Json, root: Json, anchored: dict[str, Json] | None = None) -> Json:
    """What a reference into `root` means, by its JSON pointer or an `$anchor`; None for any other.

    `anchored`: what `anchors` found in it, where many are asked for.
    """
    if not isinstance(reference, str) or not isinstance(root, dict):
        return None
    base, _, fragment = reference.partition("#")
    if base and base != str(root.get("$id")).rstrip("#"):
        return None
    steps = unquote(fragment).split("/")
    node: Json = root
    if steps[0]:
        node = (anchors(root) if anchored is None else anchored).get(steps[0])
    for step in steps[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(node, list):
            node = (
                node[int(name)]
                if re.fullmatch(r"0|[1-9][0-9]{0,5}", name) and int(name) < len(node)
                else None
            )
        else:
            node = node.get(name) if isinstance(node, dict) else None
    return node


def anchors(root: Json) -> dict[str, Json]:
    """The schemas that a name leads to."""
    found: dict[str, Json] = {}
    left = [root]
    while left:
        node = left.pop()
        if isinstance(node, dict):
            named = (node.get(word) for word in ("$anchor", "$dynamicAnchor"))
            found.update({name: node for name in named if isinstance(name, str)})
            left += node.values()
        elif isinstance(node, list):
            left += node
    return found


def types(schema: Json, root: Json) -> frozenset[str]:
    """The JSON types that it names."""
    found: set[str] = set()
    for one in parts(schema, root):
        words = one.get("type")
        found.update(
            word for word in (words if isinstance(words, list) else [words]) if isinstance(word, str)
        )
    return frozenset(found)


def property_of(schema: Json, name: str, root: Json) -> Json:
    """The schema of a property; None where none is given."""
    for one in parts(schema, root):
        properties = one.get("properties")
        if isinstance(properties, dict) and name in properties:
            return properties[name]
    return None


def item_of(schema: Json, place: int, root: Json) -> Json:
    """The schema of an item of a list; None where none is given."""
    for one in parts(schema, root):
        first = one.get("prefixItems")
        if isinstance(first, list) and place < len(first):
            return first[place]
        if isinstance(one.get("items"), dict):
            return one["items"]
    return None


def stated(schema: Json, word: str, root: Json) -> Json:
    """The value of a keyword, the nearest; None where it is not there."""
    return next((one[word] for one in parts(schema, root) if word in one), None)
