"""Find a table or view by its name, with or without its layer."""

import difflib

from goodput_queries.catalog.header import Header
from goodput_queries.catalog.models import (
    LAYERS,
    TEMP_LAYER,
    Model,
    of_layer,
    reference_tables,
)
from goodput_queries.errors import QueryError


def find_view(name: str) -> Model:
    """Return the catalogued table or view of a name, with or without its layer.

    Without it a mart comes first: it answers, where the raw table of its name only reports. Raises
    QueryError for a name that is not ours or belongs to several other layers.
    """
    known = catalogue()
    if name in known:
        return known[name]
    same = [model for model in known.values() if model.name == name]
    marts = [model for model in same if model.layer == "marts"]
    if len(marts or same) == 1:
        return (marts or same)[0]
    if same:
        names = ", ".join(model.qualified_name for model in same)
        raise QueryError(f"{name!r} is the name of several views: {names}. Name the layer too.")
    near = difflib.get_close_matches(name, [*known, *(m.name for m in known.values())], n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise QueryError(f"there is no view {name!r}.{hint} `goodput show` lists them all.")


def catalogue() -> dict[str, Model]:
    """Return the tables and views of all lasting layers by their qualified names."""
    layers = [layer for layer in LAYERS if layer != TEMP_LAYER]
    found = {m.qualified_name: m for layer in layers for m in of_layer(layer).values()}
    of_facts = Header("Facts of the product.", {}, {})
    for name in reference_tables():
        fact = Model("reference", name, "", of_facts, {})
        found.setdefault(fact.qualified_name, fact)
    return found
