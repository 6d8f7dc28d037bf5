"""Mail through an SMTP server: the message, and handing it over once to each recipient."""

import contextlib
import smtplib
import socket
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP

from goodput_messages.checks import mailbox
from goodput_messages.printable import printable
from goodput_messages.retries import NotSentError, tls_error, trusted
from goodput_messages.settings import MailSettings

TYPES = {
    "csv": ("text", "csv"),
    "html": ("text", "html"),
    "parquet": ("application", "vnd.apache.parquet"),
    "pdf": ("application", "pdf"),
}
SAID_MAX_CHARS = 300
SUBJECT_MAX_CHARS = 200


@dataclass(frozen=True)
class Letter:
    """What is mailed: one line, text, HTML.

    identity: fit for a Message-ID, the same whenever the same is mailed again; answers: that of an
    earlier mail about the same.
    """

    subject: str
    text: str
    html: str
    identity: str
    answers: str | None = None


def message(
    letter: Letter, settings: MailSettings, files: Mapping[str, bytes], at: datetime
) -> EmailMessage:
    """Return the mail: text, the same as HTML, and these files by name.

    Its Message-ID is the letter's identity, so that a copy is known as one.
    """
    sender = _address(settings.sender)
    mail = EmailMessage(policy=SMTP)
    mail["From"] = sender
    mail["To"] = [_address(one) for one in settings.to]
    mail["Subject"] = _one_line(letter.subject)[:SUBJECT_MAX_CHARS]
    mail["Date"] = at
    mail["Message-ID"] = f"<{letter.identity}@{sender.domain}>"
    if letter.answers is not None:
        mail["In-Reply-To"] = mail["References"] = f"<{letter.answers}@{sender.domain}>"
    mail["Auto-Submitted"] = "auto-generated"  # no out-of-office answers, RFC 3834
    mail.set_content(letter.text)
    mail.add_alternative(letter.html, subtype="html")
    for name, content in files.items():
        main, sub = TYPES[name.rpartition(".")[2]]
        mail.add_attachment(content, maintype=main, subtype=sub, filename=name)
    return mail


def send(mail: EmailMessage, settings: MailSettings, had: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Hand a mail over for those who do not have it; return everybody who has it then.

    Raises NotSentError where the server, or the server for one of them, refuses; who got it all
    the same is in the error.
    """
    wanted = dict.fromkeys(str(_address(one).addr_spec) for one in settings.to)
    missing = [one for one in wanted if one not in had]
    if not missing:
        return had
    password = None if settings.username is None else settings.password()
    with _session(settings, password) as server:
        refused = server.send_message(
            mail, from_addr=_address(settings.sender).addr_spec, to_addrs=missing
        )
    has = (*had, *(one for one in missing if one not in refused))
    if refused:
        raise _refusal(settings, refused, has)
    return has


def probe(settings: MailSettings) -> str:
    """Return the server that lets us in; raises GoodputError where none does. Nothing is mailed."""
    password = None if settings.username is None else settings.password()
    with _session(settings, password) as server:
        server.noop()
    return settings.origin


@contextlib.contextmanager
def _session(settings: MailSettings, password: str | None) -> Iterator[smtplib.SMTP]:
    """Yield a connection that is encrypted and logged in as the settings want it."""
    with _stated(settings):
        server = _connected(settings)
        try:
            if settings.username is not None and password is not None:
                server.login(settings.username, password)
            yield server
            with contextlib.suppress(smtplib.SMTPException, OSError):
                server.quit()  # it has taken the mail: how it takes leave changes nothing
        finally:
            server.close()


def _connected(settings: MailSettings) -> smtplib.SMTP:
    """Return a connection that is encrypted as the settings want it."""
    port = int(settings.origin.rpartition(":")[2])
    context = trusted(settings.ca_file, settings.section)
    if settings.security == "tls":
        return smtplib.SMTP_SSL(settings.host, port, timeout=settings.timeout_s, context=context)
    server = smtplib.SMTP(settings.host, port, timeout=settings.timeout_s)
    if settings.security == "starttls":
        try:
            server.starttls(context=context)
        except BaseException:
            server.close()
            raise
    return server


@contextlib.contextmanager
def _stated(settings: MailSettings) -> Iterator[None]:
    """Turn what can happen on the way into one sentence."""
    where = settings.origin
    try:
        yield
    except smtplib.SMTPRecipientsRefused as error:
        raise _refusal(settings, error.recipients, ()) from error
    except smtplib.SMTPAuthenticationError as error:
        raise NotSentError(
            f"{where} refused user and password ({_said(error.smtp_code, error.smtp_error)}). "
            f"Check username and password of [{settings.section}].",
            is_transient=_is_transient(error.smtp_code),
        ) from error
    except smtplib.SMTPResponseException as error:
        raise NotSentError(
            f"{where} refused the mail ({_said(error.smtp_code, error.smtp_error)}).",
            is_transient=_is_transient(error.smtp_code),
        ) from error
    except smtplib.SMTPNotSupportedError as error:
        raise NotSentError(
            f"{where} cannot do what is asked of it ({_one_line(str(error))}). Check security and "
            f"username of [{settings.section}]."
        ) from error
    except smtplib.SMTPServerDisconnected as error:
        if isinstance(error.__context__, TimeoutError):
            raise _silence(settings) from error
        raise NotSentError(
            f"{where} broke off the connection ({_one_line(str(error))}).", is_transient=True
        ) from error
    except smtplib.SMTPException as error:
        raise NotSentError(f"{where}: {_one_line(str(error))}.") from error
    except UnicodeEncodeError:
        raise NotSentError(
            f"user or password of [{settings.section}] has characters that SMTP cannot send."
        ) from None  # that error has the password in it
    except ssl.SSLError as error:
        raise NotSentError(
            f"{where}: no secure connection ({tls_error(error)}). Check security, host and "
            f"ca_file of [{settings.section}]."
        ) from error
    except socket.gaierror as error:
        raise NotSentError(
            f"{where}: there is no such host ({error.strerror}). Check host of "
            f"[{settings.section}].",
            is_transient=error.errno == socket.EAI_AGAIN,
        ) from error
    except TimeoutError as error:
        raise _silence(settings) from error
    except OSError as error:
        raise NotSentError(
            f"{where}: no connection ({error.strerror or error}).", is_transient=True
        ) from error


def _silence(settings: MailSettings) -> NotSentError:
    return NotSentError(
        f"{settings.origin} did not answer within {settings.timeout_s} s "
        f"({settings.section}.timeout_s).",
        is_transient=True,
    )


def _refusal(
    settings: MailSettings,
    refused: Mapping[str, tuple[int, bytes]],
    has: tuple[str, ...],
) -> NotSentError:
    """Return why some recipients have nothing; worth another attempt where it is for one."""
    whom = "; ".join(f"{one}: {_said(*answer)}" for one, answer in sorted(refused.items()))
    return NotSentError(
        f"{settings.origin} refused recipients ({whom[: 3 * SAID_MAX_CHARS]}). Correct the "
        f"addresses of [{settings.section}], or ask the server's keepers.",
        is_transient=any(_is_transient(code) for code, _ in refused.values()),
        recipients=has,
    )


def _is_transient(code: int) -> bool:
    """Say whether a reply means: not now (RFC 5321, 4.2.1). -1 is a reply that is none."""
    return 400 <= code < 500 or code == -1


def _said(code: int, words: bytes | str) -> str:
    text = words.decode("utf-8", "replace") if isinstance(words, bytes) else words
    return f"{code} {_one_line(text)}"[:SAID_MAX_CHARS]


def _one_line(text: str) -> str:
    """Return text without line breaks and control characters, which would begin another header."""
    return printable(" ".join(text.split()))


def _address(text: str) -> Address:
    found = mailbox(text)
    assert found is not None  # noqa: S101 -- the settings were checked
    return found
