"""The form of stored records, as part of the version of what is computed."""


def shape(of: object) -> object:
    """A JSON schema without its words."""
    if isinstance(of, dict):
        return {key: shape(value) for key, value in of.items() if key != "description"}
    return [shape(value) for value in of] if isinstance(of, list) else of
