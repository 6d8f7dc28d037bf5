"""What readings of GPUs say of held time: how far each covers, long gaps, idle and active time."""

from itertools import pairwise

HOUR_MS = 3_600_000

IDLE_MIN_MS = 300_000
PAUSE_INTERVAL_MS = 60_000
TRIM_MIN_MS = 150
IDLE_SHARE = 0.9
SAMPLE_REACH = 2.5
QUARTER_MS = 900_000
HOLE_REACH = 10
END_MS = 60_000


def of_long_gap(a, b, gang):
    """Amendment 9, docs: a gap is settled as a whole, by what its readings cover inside of it.

    It is short where it is shorter than two intervals of each GPU that is read in it.
    """
    idle = total = 0
    are_short = []
    for readings in gang:
        for begin, end, active, interval in covers(readings):
            trim = max(TRIM_MIN_MS, interval)
            low, high = max(begin, a + trim), min(end, b - trim)
            if begin < b and end > a:
                are_short.append(b - a < 2 * interval)
            if high > low:
                total += high - low
                idle += 0 if active else high - low
    if not total:
        return "busy_unclassified" if are_short and all(are_short) else "unknown"
    return "idle_held" if idle >= IDLE_SHARE * total else "busy_unclassified"


def covers(readings):
    """Rule 10, amendment 8: a reading covers back to the one before, at most 2.5 intervals.

    The interval is the lower median of the distances that end in the hour; of fewer than two, the
    least of them and of those in the quarter hours around the hour.
    """
    moments = [moment for moment, _ in readings]
    distances = [(b, b - a) for a, b in pairwise(moments)]
    intervals = {}
    for hour in {moment // HOUR_MS for moment, _ in distances}:
        own = sorted(d for moment, d in distances if moment // HOUR_MS == hour)
        if len(own) >= 2:
            intervals[hour] = own[(len(own) - 1) // 2]
            continue
        low, high = hour * HOUR_MS - QUARTER_MS, (hour + 1) * HOUR_MS + QUARTER_MS
        intervals[hour] = min(d for moment, d in distances if low <= moment < high)
    found = []
    for (before, _), (moment, active) in pairwise(readings):
        interval = intervals[moment // HOUR_MS]
        reach = int(SAMPLE_REACH * interval)
        found.append((max(before, moment - reach), moment, active, interval))
    return found


def telemetry(readings, begin, end):
    """Amendment 15: A14 where two readings in a row show no activity, else A19.

    Of readings over a minute apart only what lasts 300 s inside the allocation is A14.
    """
    found = []
    for stretch in _stretches(readings):
        inside = [(max(a, begin), min(b, end), i) for a, b, _, i in stretch]
        inside = [cover for cover in inside if cover[0] < cover[1]]
        if not inside:
            continue
        low, high = inside[0][0], inside[-1][1]
        are_far_apart = max(i for a, _, i in inside if a < low + IDLE_MIN_MS) > PAUSE_INTERVAL_MS
        is_idle = not stretch[0][2] and _count(stretch, readings) > 1
        if are_far_apart:
            is_idle = is_idle and high - low >= IDLE_MIN_MS
        found.append((low, high, "idle_held" if is_idle else "busy_unclassified"))
    return found


def quiet_from(readings, begin, end):
    """Return since when a GPU was inactive up to the end; None: it was not, or is not read then.

    What a long hole in the readings held is not known: after it begins anew. The last minute before
    the end may show the activity of what follows.
    """
    quiet, before, is_seen = begin, None, False
    for low, high, active, interval in covers(readings):
        if low >= end or high <= begin:
            continue
        if active:
            if high < end - END_MS:
                quiet = max(quiet, high)
        else:
            is_seen |= high >= end - END_MS
            if before is not None and low - before > HOLE_REACH * interval:
                quiet = max(quiet, low)
        before = high
    return quiet if is_seen else None


def _stretches(readings):
    """Return covers that touch and agree, together."""
    found = []
    for cover in covers(readings):
        last = found[-1][-1] if found else None
        if last and last[1] == cover[0] and last[2] == cover[2]:
            found[-1].append(cover)
        else:
            found.append([cover])
    return found


def _count(stretch, readings):
    """Return how many readings a stretch has; the first of all covers nothing, but is one."""
    return len(stretch) + (readings[0] == (stretch[0][0], stretch[0][2]))
