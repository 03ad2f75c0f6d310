"""How long users wait for training steps, and for whom."""

ROWS = []


class Wait:
    """From `begin` to the first step; `ours` of it until the last process had been started."""

    def __init__(self, begin, step, ours):
        self.total, self.ours = step - begin, ours
        self.theirs = self.total - ours


def add(framework, start, recovery):
    ROWS.append((framework, start, recovery))


def table():
    """A Markdown table, as it stands in docs/benchmarks.md."""
    lines = ["| framework | apply to first step | ours | theirs | worker killed to next step | ours | theirs |",
             "|---|---|---|---|---|---|---|"]
    for framework, start, recovery in ROWS:
        figures = [f"{seconds:.2f} s" for wait in (start, recovery)
                   for seconds in (wait.total, wait.ours, wait.theirs)]
        lines.append(f"| {framework} | {' | '.join(figures)} |")
    return lines
