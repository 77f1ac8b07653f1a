"""A CloudFormation custom resource: work that is part of a deployment.

CloudFormation waits for an answer at an address of its own, whatever becomes of the work: without
one the deployment hangs. A failure is its answer too, with the reason that the console shows; then
the deployment is rolled back.
"""

import hashlib
import json
import logging
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any, Final

LONGEST_REASON: Final = 2000
"""Bytes, as JSON: the whole answer may have 4096."""

_SECONDS: Final = 10.0
_log: Final = logging.getLogger("intermezzo")


def is_request(event: Mapping[str, Any]) -> bool:
    """Whether an event is CloudFormation's."""
    return "ResponseURL" in event and "RequestType" in event


def deploy(event: Mapping[str, Any], work: Callable[[], Any]) -> None:
    """Does the work when the resource is made or changed, and tells CloudFormation how it went.

    The resource has a fingerprint of its properties, `!GetAtt ….Fingerprint`: by it a template can
    have something made anew when a parameter gets another value.

    Nothing is undone when the resource is deleted: what the database holds is not the stack's.

    Raises:
        OSError: CloudFormation can't be told. From a VPC its address, which is in S3, is reached by
            a NAT gateway or an endpoint for S3.
    """
    reason = ""
    try:
        if event["RequestType"] != "Delete":
            work()
    except Exception as error:
        _log.exception("the deployment fails")
        reason = _cut(f"{type(error).__name__}: {error}")
    _tell(event, reason)


def _cut(reason: str) -> str:
    """As much of it as goes into an answer."""
    while (excess := len(json.dumps(reason)) - LONGEST_REASON) > 0:
        # No character takes more than twelve bytes, so that this cuts none too many.
        reason = reason[: -max(1, excess // 12)]
    return reason


def _fingerprint(event: Mapping[str, Any]) -> str:
    properties = json.dumps(event.get("ResourceProperties"), sort_keys=True)
    return hashlib.sha256(properties.encode()).hexdigest()[:16]


def _tell(event: Mapping[str, Any], reason: str) -> None:
    answer = {
        "Status": "FAILED" if reason else "SUCCESS",
        "Reason": reason,
        "Data": {"Fingerprint": _fingerprint(event)},
        "PhysicalResourceId": event.get("PhysicalResourceId", event["LogicalResourceId"]),
        **{name: event[name] for name in ("StackId", "RequestId", "LogicalResourceId")},
    }
    request = urllib.request.Request(
        event["ResponseURL"],
        data=json.dumps(answer).encode(),
        headers={"Content-Type": ""},  # the address was signed without one
        method="PUT",
    )
    with urllib.request.urlopen(request, timeout=_SECONDS):
        pass
