"""What befalls a file: each function changes its bytes in one way that happens, or that hurts."""

import gzip
import re

CHANGES_MAX = 4
NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
TIME = re.compile(rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d")
NUMBERS = (
    *(b"0", b"-1", b"1e308", b"-1e308", b"1e-308", b"1e999", b"NaN", b"nan", b"Infinity", b"inf"),
    *(b"-inf", b"9223372036854775807", b"9223372036854775808", b"-9223372036854775809"),
    *(b"18446744073709551615", b"2147483648", b"1" + b"0" * 30, b"9" * 400, b"0.1e1", b"1e"),
    *(b"--1", b"", b"true", b"null", b"0x10", b"1_000", b"\xd9\xa1", b"1,5", b"99999999999"),
    b"253402300800",
)
TIMES = (
    *(b"0001-01-01T00:00:00", b"9999-12-31T23:59:59", b"1970-01-01T00:00:00"),
    *(b"0000-00-00T00:00:00", b"2025-02-30T25:61:61", b"2038-01-19T03:14:08"),
    *(b"99999-01-01T00:00:00", b"-001-01-01T00:00:00", b"1677-09-21T00:12:43"),
    b"2262-04-11T23:47:17",
)
JUNK = (
    *(b"\x00", b"\xff", b"\xfe\xff", b"\xc3\x28", b"\xed\xa0\x80", b"\r", b"\x1b[2J"),
    *(b"\xe2\x80\xae", b"\n", b"\t", b'"', b"\\", b"{", b"}", b"[", b"]", b"=", b"|", b",", b"%"),
    *(b"'", b"\x0b", b"\x85", b"\xef\xbb\xbf", b"\\ud800", b"\\u0000", b"a" * 3_000),
    *(b"[" * 2_000, b'{"a":' * 500),
)
SEPARATORS = (b"|", b",", b"\t", b" ", b": ", b"=")


def mutated(content, random):
    """Return the bytes after one to CHANGES_MAX changes, and the names of the changes."""
    chosen = random.choices(CHANGES, k=random.randint(1, CHANGES_MAX))
    if random.random() < 0.05:
        chosen.append(random.choice(PACKINGS))
    for change in chosen:
        content = change(content, random)
    return content, [change.__name__ for change in chosen]


def flip_bytes(content, random):
    """Change single bytes."""
    found = bytearray(content)
    for _ in range(random.choice((1, 1, 2, 5, 20)) if found else 0):
        found[random.randrange(len(found))] = random.randrange(256)
    return bytes(found)


def cut_end(content, random):
    """Keep the beginning."""
    return content[: random.randint(0, len(content))]


def cut_piece(content, random):
    """Leave a piece out of the middle."""
    start = random.randint(0, len(content))
    return content[:start] + content[start + random.choice((1, 2, 10, 100, 1_000)) :]


def repeat_lines(content, random):
    """Repeat some lines, next to themselves or at the end."""
    lines = content.splitlines(keepends=True)
    for _ in range(random.choice((1, 3, 20)) if lines else 0):
        line = random.choice(lines)
        lines.insert(random.choice((len(lines), random.randint(0, len(lines)))), line)
    return b"".join(lines)


def shuffle_lines(content, random):
    """Put the lines in another order."""
    lines = content.splitlines(keepends=True)
    random.shuffle(lines)
    return b"".join(lines)


def drop_lines(content, random):
    """Leave lines out."""
    return b"".join(x for x in content.splitlines(keepends=True) if random.random() > 0.2)


def change_numbers(content, random):
    """Put extreme numbers, and what is none, in the place of some numbers."""
    return _replaced(NUMBER, NUMBERS, content, random)


def change_times(content, random):
    """Put times at the ends of what calendars have in the place of some times."""
    return _replaced(TIME, TIMES, content, random)


def insert_junk(content, random):
    """Put bytes in that no text has, or that formats are made of."""
    for _ in range(random.choice((1, 1, 3))):
        at = random.randint(0, len(content))
        content = content[:at] + random.choice(JUNK) + content[at:]
    return content


def end_lines_otherwise(content, random):
    """End lines as other systems do."""
    return content.replace(b"\n", random.choice((b"\r\n", b"\r", b"\n\n", b"\n\r", b"\x00")))


def swap_fields(content, random):
    """Exchange two fields of some lines."""
    lines, separator = content.split(b"\n"), random.choice(SEPARATORS)
    for at in random.sample(range(len(lines)), min(len(lines), random.choice((1, 2, 10)))):
        fields = lines[at].split(separator)
        if len(fields) > 1:
            one, other = random.sample(range(len(fields)), 2)
            fields[one], fields[other] = fields[other], fields[one]
            lines[at] = separator.join(fields)
    return b"\n".join(lines)


def empty_fields(content, random):
    """Leave nothing of some fields but their separators."""
    separator = random.choice(SEPARATORS)
    fields = content.split(separator)
    for _ in range(random.choice((1, 3, 10))):
        fields[random.randrange(len(fields))] = b""
    return separator.join(fields)


def encode_otherwise(content, random):
    """Write the text in another encoding."""
    text = content.decode("utf-8", "replace")
    return text.encode(random.choice(("utf-16", "utf-32", "latin-1", "utf-8-sig")), "replace")


def pack(content, _random):
    """Compress it, as rotated logs are."""
    return gzip.compress(content, mtime=0)


def pack_badly(content, random):
    """Compress it and damage the outcome."""
    return random.choice((flip_bytes, cut_end, cut_piece))(gzip.compress(content, mtime=0), random)


def claim_packing(content, _random):
    """Begin as a compressed file does."""
    return b"\x1f\x8b\x08\x00" + content


def _replaced(pattern, choices, content, random):
    share = random.choice((0.002, 0.02, 0.2))
    return pattern.sub(
        lambda found: random.choice(choices) if random.random() < share else found[0], content
    )


CHANGES = (
    *(flip_bytes, cut_end, cut_piece, repeat_lines, shuffle_lines, drop_lines),
    *(change_numbers, change_numbers, change_numbers, change_times, insert_junk, insert_junk),
    *(end_lines_otherwise, swap_fields, empty_fields, encode_otherwise),
)
PACKINGS = (pack, pack_badly, claim_packing)
