"""Which columns of a table a terminal has room for: the ones that say most, whole numbers first."""

from collections.abc import Mapping

GAP = 2  # between two columns
TEXT_MIN = 24  # a longer text is cut before a column is left out
# in this order; columns that are not here come last, from the left
TELLING = (
    *("run_id", "node", "gpu_index", "rank", "label", "state", "goodput_of_held_ratio"),
    *("goodput_of_held_hi_ratio", "gap_s", "duration_s", "imposed_wait_gpu_s", "cost"),
    *("lost_cost", "cause", "reason", "start_at", "first_start_at", "gpu_ms", "gpus", "verdict"),
    *("attempt", "team", "user_name", "steps", "booked_gpu_ms", "blame", "fix", "evidence"),
    *("run_name", "run_key"),
)


def fitting(natural: Mapping[str, int], texts: frozenset[str], width: int) -> dict[str, int]:
    """Return the columns that fit into a width, each with the characters that it gets.

    natural: the width of each column as a whole, in the order of the table; texts: those to cut.
    """
    if sum(natural.values()) + GAP * (len(natural) - 1) <= width:
        return dict(natural)
    places = {name: place for place, name in enumerate(TELLING)}
    order = sorted(natural, key=lambda name: places.get(name, len(places)))  # stable
    chosen: dict[str, int] = {}
    room = width + GAP
    for name in order:
        needed = min(natural[name], TEXT_MIN) if name in texts else natural[name]
        if needed + GAP <= room:
            chosen[name] = needed
            room -= needed + GAP
    for name, given in chosen.items():
        more = min(room, natural[name] - given)
        chosen[name] = given + more
        room -= more
    return {name: chosen[name] for name in natural if name in chosen}
