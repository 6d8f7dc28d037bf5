"""What each kind of HTTP target is sent: Alertmanager's alerts, our JSON, Slack's, Teams' form.

Names of jobs and nodes are of others. They are in fields that their receivers do not interpret
(`plain_text` of Slack, `TextRun` of adaptive cards), and in Slack's preview they are escaped.
"""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from goodput_messages.message import FINDINGS_SHOWN, Message, Notice, headline, lines, more, plain

SCHEMA = "goodput.findings/1"
CARD_SCHEMA = "http://adaptivecards.io/schemas/adaptive-card.json"
CARD_TYPE = "application/vnd.microsoft.card.adaptive"
SLACK_TEXT_MAX_CHARS = 2_900  # Slack takes 3,000
CARD_ACTIONS_MOST = 6  # Teams shows no more
ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def alerts(notices: Iterable[Notice], *, ends_ms: int) -> bytes:
    """Return alerts as `/api/v2/alerts` takes them; ends_ms: in the future for open findings."""
    return _json([_alert(one, ends_ms) for one in notices])


def own(content: Message) -> bytes:
    """Return our JSON: what happened to which findings."""
    return _json(
        {
            "schema": SCHEMA,
            "event": f"finding.{content.event}",
            "id": content.identity,
            "answers": content.answers,
            "at_ms": content.at_ms,
            "headline": headline(content),
            "findings": [_finding(one) for one in content.notices],
        }
    )


def slack(content: Message) -> bytes:
    """Return a message of Slack's incoming webhooks."""
    blocks: list[dict[str, Any]] = [
        {"type": "header", "text": _plain_text(headline(content)[:150])}
    ]
    for one in content.notices[:FINDINGS_SHOWN]:
        text = "\n".join(lines(one, content))
        blocks.append({"type": "section", "text": _plain_text(text[:SLACK_TEXT_MAX_CHARS])})
        if one.url is not None:
            link = {"type": "mrkdwn", "text": f"<{one.url.translate(ESCAPES)}|Open in Goodput>"}
            blocks.append({"type": "context", "elements": [link]})
    if (rest := more(content)) is not None:
        blocks.append({"type": "section", "text": _plain_text(rest)})
    return _json({"text": headline(content).translate(ESCAPES), "blocks": blocks})


def teams(content: Message) -> bytes:
    """Return a message with an adaptive card, as a workflow of Microsoft Teams takes it."""
    body = [_run(headline(content), size="Medium", weight="Bolder")]
    actions = []
    for one in content.notices[:FINDINGS_SHOWN]:
        first, *others = lines(one, content)
        body.append(_run(first, weight="Bolder"))
        body += [_run(line) for line in others]
        if one.url is not None:
            title = f"Open {plain(one.subject)[:40] or 'the finding'}"
            actions.append({"type": "Action.OpenUrl", "title": title, "url": one.url})
    if (rest := more(content)) is not None:
        body.append(_run(rest))
    card = {
        "$schema": CARD_SCHEMA, "type": "AdaptiveCard", "version": "1.4", "body": body,
        "actions": actions[:CARD_ACTIONS_MOST],
    }  # fmt: skip
    attachment = {"contentType": CARD_TYPE, "contentUrl": None, "content": card}
    return _json({"type": "message", "attachments": [attachment]})


def _alert(one: Notice, ends_ms: int) -> dict[str, Any]:
    labels = {
        "alertname": one.rule,
        "severity": one.severity,
        "cluster": one.cluster,
        "team": one.team,
        "run": one.run,
        "node": one.node,
        "gpu": None if one.gpu_index is None else str(one.gpu_index),
        "finding": one.finding_key,
    }
    annotations = {
        "summary": f"{plain(one.title)}: {plain(one.subject) or 'the fleet'}",
        "description": plain(one.evidence),
        "action": plain(one.what_to_do),
        "link": one.url,
    }
    found: dict[str, Any] = {
        "labels": {name: plain(text) for name, text in labels.items() if text},
        "annotations": {name: text for name, text in annotations.items() if text},
        "startsAt": _iso(min(one.since_ms, ends_ms - 1)),  # an end before it is refused
        "endsAt": _iso(ends_ms),
    }
    if one.url is not None:
        found["generatorURL"] = one.url
    return found


def _finding(one: Notice) -> dict[str, Any]:
    return {
        "key": one.finding_key,
        "rule": one.rule,
        "severity": one.severity,
        "title": one.title,
        "subject": one.subject,
        "cluster": one.cluster,
        "node": one.node,
        "gpu_index": one.gpu_index,
        "run": one.run,
        "team": one.team,
        "user": one.user,
        "since_ms": one.since_ms,
        "is_since_before": one.is_cut,
        "lost_gpu_ms": one.gpu_ms,
        "evidence": one.evidence,
        "what_to_do": one.what_to_do,
        "url": one.url,
    }


def _plain_text(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": text, "emoji": False}


def _run(text: str, **style: str) -> dict[str, Any]:
    return {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": text, **style}]}


def _iso(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds")


def _json(body: object) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
