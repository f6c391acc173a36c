"""Steps whose inputs vary in three ways follow schedules that were made for others, on a real PyTorch."""

from gmswap_hook import buckets, family, runtime

from real import main
from real_demand import translations
from real_family import counted

LIMIT = 300000  # bytes: most steps need more


def followed(how, steps=40, alike=0):
    return counted(lambda: translations(steps, alike), how, LIMIT)


def test_followed():
    """Steps follow schedules but for some of the first, and what is recomputed is what it was."""
    for how in "offload", "remake":
        ways, schedule, made = followed(how)
        assert isinstance(schedule, buckets.Buckets) and ways.count("recorded") == 3, (schedule, ways)
        assert "adapted" not in ways and ways.count("planned") > len(ways) / 2, ways
        assert (made > 5) == (how == "remake"), (how, made)


def test_turned():
    """So do those whose sizes turn out to vary by themselves, where they did not seem to."""
    real, turned, beyond = runtime.Runtime.follow_turned, [], family.Family.BEYOND
    family.Family.BEYOND = 1.0  # or these would still fit into its schedule

    def turn(self, planning):
        self.deviated, old = 7, self.schedule
        real(self, planning)
        turned.append(type(old))
        assert not self.doubted() and self.schedule.most >= old.most and self.schedule.model.bases.start >= old.model.bases.start

    runtime.Runtime.follow_turned = turn
    try:
        ways, schedule, _ = followed("remake", steps=50, alike=8)
    finally:
        runtime.Runtime.follow_turned, family.Family.BEYOND = real, beyond
    assert turned == [family.Family] and isinstance(schedule, buckets.Buckets), (turned, schedule)
    assert ways[-20:].count("planned") > 15, ways


if __name__ == "__main__":
    main(globals())
