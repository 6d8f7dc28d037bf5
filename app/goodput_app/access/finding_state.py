"""States of findings as people set them on the Findings page: who may, and what is recorded."""

from collections.abc import Mapping
from typing import Any

from goodput_app.access import audit
from goodput_app.access.identity import Action
from goodput_queries import findings
from goodput_queries.database import Store


def record(
    store: Store,
    finding: Mapping[str, Any],
    action: findings.Action,
    said_by: str,
    note: str | None,
) -> None:
    """Store what a person says of a finding; see `findings.record`.

    Raises NotAllowedError for somebody who may not set its state.
    """
    subject = f"{action}: {finding['title']} ({finding['subject'] or 'the fleet'})"
    with audit.acting(store, Action.SET_FINDING_STATE, subject):
        findings.record(store, finding, action, said_by=said_by, note=note)
