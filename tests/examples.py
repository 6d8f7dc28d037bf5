"""How many random examples a test tries that builds a database for each of them."""

import os

MORE = "GOODPUT_EXAMPLES"


def examples(few):
    """Return `few`, or as many times that as the environment says: `make oracle` tries more."""
    return few * int(os.environ.get(MORE, "1"))
