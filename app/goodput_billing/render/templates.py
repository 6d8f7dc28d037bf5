"""Templates of HTML and Markdown files, in the packages that fill them."""

from functools import cache

import jinja2


def environment(package: str) -> jinja2.Environment:
    """Return the templates of a package, which escape what they are given and fail without it."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader(package, "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )


@cache
def template(package: str, name: str) -> jinja2.Template:
    """Return a template of a package that needs no filters of its own."""
    return environment(package).get_template(name)
