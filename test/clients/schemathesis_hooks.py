"""What schemathesis cannot know of this API."""

import itertools

import schemathesis
from hypothesis import strategies

# A cursor other than the beginning is taken from an answer.
schemathesis.openapi.format("cursor", strategies.just(""))

# No pattern says what a purl of each type must have.
schemathesis.openapi.format(
    "purl",
    strategies.sampled_from(
        ["pkg:npm/x", "pkg:pypi/flask", "pkg:deb/debian/curl", "pkg:pypi/flask@2.0.1", "pkg:npm/%40scope/x@1"]
    ),
)

clients = itertools.count(1)


@schemathesis.hook
def before_call(context, case, kwargs):
    """Each request comes from a client of its own, behind a proxy: ten wrong keys of one client are answered with 429."""
    n = next(clients)
    address = f"10.{n >> 16 & 255}.{n >> 8 & 255}.{n & 255}"
    case.headers = {**(case.headers or {}), "X-Forwarded-For": address}
