"""`[[notify]]` in goodput.toml: what is refused, with the key and what is expected."""

import msgspec
import pytest

from goodput_billing.delivery.settings import StatementMail
from goodput_messages.targets import AnyTarget, Owner
from goodput_queries.errors import GoodputError

SLACK = 'to = "slack"\nurl = "https://hooks.example/T0/secret"\n'
KINDS = "alertmanager, webhook, slack, teams, mail, owner"
COMMON = (
    "name, rules, min_severity, teams, clusters, group_by, wait_s, repeat_h, "
    "page_repeat_h, send_resolved, digest_at, timeout_s, ca_file"
)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", f"'notify.to' is None, expected one of {KINDS}."),
        ("to = 'slack'", "'notify' needs one of url, url_env and url_file, and no second of them."),
        ("to = 'slack'\nurl = 'a b'", "'notify.url' is not a URL; expected like https://"),
        (f"{SLACK}channel = 'x'",
         f"there is no setting 'notify.channel' for 'slack'; known: {COMMON}, url, url_env, "
         "url_file, token_env, token_file."),
        (f"{SLACK}rules = [1]", "'notify.rules' is [1], expected a list of texts in quotes."),
        (f"{SLACK}wait_s = -1", "'notify.wait_s' is -1, expected seconds from 0 on."),
        (f"{SLACK}digest_at = '24:00'",
         "'notify.digest_at' is '24:00', expected a time in UTC such as '07:30'."),
        ('to = "alertmanager"\nurl = "http://a.example:9093"\ndigest_at = "07:30"',
         "'notify.digest_at' is not for an Alertmanager, which sends by its own routes."),
        (f"{SLACK}min_severity = 'bad'",
         "'notify.min_severity' is 'bad', expected one of page, ticket."),
        *((f"{SLACK}min_severity = '{former}'",
           f"'notify.min_severity' is '{former}', which is called {now}.")
          for former, now in (("critical", "'page' now"),
                              ("warning", "'ticket' now"),
                              ("info",
                               "'note' now and is not sent, expected one of page, ticket"))),
        (f"{SLACK}group_by = ['gpu']",
         "'notify.group_by' is 'gpu', expected one of rule, severity, cluster, team, node, run."),
        ("to = 'webhook'\nurl = 'http://127.0.0.1.example'\ntoken_env = 'T'",
         "'notify.url' is http, which would send the token in the clear; expected https."),
        ("to = 'mail'", "'notify.addresses' names nobody, expected a list of addresses."),
        ("to = 'mail'\naddresses = ['ops']",
         "'notify.addresses' has 'ops', expected an address like ops@example.org."),
        ("to = 'owner'\naddress = 'ann@example.org'",
         "'notify.address' is 'ann@example.org', expected like {user}@example.org."),
        ("to = 'owner'", "'notify.address' is not set, expected like {user}@example.org"),
        ("to = 'owner'\naddresses = {ann = 3}",
         "'notify.addresses' is {'ann': 3}, expected a table of texts in quotes."),
        ("to = 'owner'\naddress = '{user}@x.org'\naddresses = 3",
         "'notify.addresses' is a table; write it as [notify.addresses]."),
        (f"{SLACK}[[notify]]\n{SLACK}",
         "two [[notify]] tables are named 'slack', expected a 'name' of its own each."),
    ],
)  # fmt: skip
def test_a_target_that_makes_no_sense_is_refused(refusal, text, sentence):
    assert sentence in refusal(f"[[notify]]\n{text}\n")


@pytest.mark.parametrize("text", ["notify = 1", "[notify]", "notify = {to = 'slack'}"])
def test_targets_are_a_list(refusal, text):
    assert "'notify' is a list; write each target as" in refusal(text)


@pytest.mark.parametrize(
    ("user", "address"),
    [
        ("bob", "bob@example.org"),
        ("ann", "ann.lee@example.org"),
        ("eve@evil.example,x", None),
        ("eve\r\nBcc: all", None),
        ("", None),
        (None, None),
    ],
)
def test_a_user_name_of_others_makes_no_address_elsewhere(user, address):
    target = Owner(address="{user}@example.org", addresses={"ann": "ann.lee@example.org"})

    assert target.address_of(user) == address


def test_a_mail_target_without_a_host_uses_the_server_of_statements():
    given = {"to": "mail", "addresses": ["ops@example.org"]}
    target = msgspec.convert(given, AnyTarget)
    report = StatementMail(host="smtp.example", sender="g@example.org", to=("f@example.org",))

    server = target.server(("ops@example.org",), report)

    assert (server.origin, server.sender, server.to) == (
        "smtp.example:587", "g@example.org", ("ops@example.org",),
    )  # fmt: skip
    with pytest.raises(GoodputError, match=r"'notify.host' is not set, .* or in \[report.mail\]"):
        target.server(("ops@example.org",), None)
