"""Who calls, in one string: issuer, subject and client, told apart without doubt.

Pure module. A request state is bound to this string; nothing reads it back.
"""

import json


def principal(issuer: str, subject: str, client: str = "") -> str:
    """The principal. Two that differ in any part differ; none is empty."""
    return json.dumps([issuer, subject, client], separators=(",", ":"))
