"""The lives of a job's processes: which events belong to one attempt."""


def lives_of(job):
    """docs: by the job's own numbers, else by `job.start` and steps whose number does not go on.

    A number that was missing so far, and comes once, is of a clock that was set back.
    """
    lives = {}
    if "attempt" in job.events[0]:
        for event in job.events:
            lives.setdefault(event["attempt"], []).append(event)
        return [lives[number] for number in sorted(lives)]
    found = []
    numbers = []  # since the last start
    for i, event in enumerate(job.events):
        is_start = event["event"] == "job.start" and event["t"] < job.end
        if is_start:
            numbers = []
        elif event["event"] == "step" and event["t"] < job.end:
            number, rest = event["step"], job.events[i + 1 :]
            until = next((k for k, e in enumerate(rest) if e["event"] == "job.start"), len(rest))
            later = [e["step"] for e in rest[:until] if e["event"] == "step"]
            is_missing = number - 1 in numbers and number not in [*numbers, *later]
            is_start = bool(numbers) and number <= numbers[-1] and not is_missing
            numbers.append(number)
        if not found or is_start:
            found.append([])
        found[-1].append(event)
    return found
