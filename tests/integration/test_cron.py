# SPDX-License-Identifier: Apache-2.0
"""The cron engine compared with two others, on generated expressions, zones and instants: the
library of the CronJob controller, and systemd-analyze calendar for what both can express.

Every difference must be one that docs/eru.md lists."""

import calendar
import datetime
import os
import random
import re
import shutil
import subprocess
import zoneinfo

import pytest

from support import gotools, paths

SEED = int(os.environ.get("STEWARD_CRON_SEED", "20260101"))
COUNT = int(os.environ.get("STEWARD_CRON_COUNT", "20000"))
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Shanghai", "Asia/Kolkata",
         "Australia/Lord_Howe", "America/Sao_Paulo", "Pacific/Apia", "Africa/Casablanca",
         "America/St_Johns", "Asia/Tehran", "Europe/Dublin", "Pacific/Chatham", "America/Havana"]
FIELDS = [(0, 59, 59), (0, 23, 23), (1, 31, 31), (1, 12, 12), (0, 7, 6)]
NAMES = {3: "jan feb mar apr may jun jul aug sep oct nov dec".split(),
         4: "sun mon tue wed thu fri sat".split()}
MACROS = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"]


@pytest.fixture(scope="module")
def ours():
    """The engine under test: takes a list of lines, returns a list of answers."""
    binary = paths.steward_binary().parents[1] / "tests" / "integration" / "cron_probe"
    return lambda lines: _ask([binary], lines)


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    """The CronJob controller's library."""
    if not shutil.which("go") or not os.path.isdir(f"{gotools.GOPATH}/src/github.com/robfig/cron"):
        pytest.skip("needs golang-go and golang-github-robfig-cron-dev")
    peer = gotools.build(paths.TOP / "tests" / "integration" / "cron_peer" / "main.go",
                         tmp_path_factory.mktemp("peer") / "peer")
    return lambda lines: _ask([peer], lines)


def _ask(command, lines):
    text = "".join("\t".join(str(part) for part in line) + "\n" for line in lines)
    result = subprocess.run(command, input=text, capture_output=True, text=True, check=True,
                            timeout=300)
    answers = result.stdout.splitlines()
    assert len(answers) == len(lines)
    return [a if a.startswith("!") else [int(n) for n in a.split()] for a in answers]


# --- generated expressions


def _value(dice, field):
    low, high, _ = FIELDS[field]
    n = dice.randint(low, high)
    names = NAMES.get(field)
    if names and dice.random() < 0.3:
        name = dice.choice(names)
        return dice.choice([name, name.upper(), name.title()])
    return dice.choice([str(n), f"{n:02d}"])


def _item(dice, field):
    low, _, high = FIELDS[field]
    shape = dice.random()
    step = f"/{dice.choice([1, 2, 3, 5, 7, 15, 40, 90])}" if dice.random() < 0.35 else ""
    if shape < 0.4:
        return dice.choice("***?") + step
    if shape < 0.75:
        return _value(dice, field) + (step if dice.random() < 0.3 else "")
    first, second = sorted((dice.randint(low, high), dice.randint(low, high)))
    return f"{first}-{second}{step}"


def _field(dice, field):
    return ",".join(_item(dice, field) for _ in range(dice.choice([1, 1, 1, 1, 2, 3])))


def _expression(dice):
    if dice.random() < 0.02:
        return dice.choice(MACROS)
    return dice.choice([" ", "  ", "\x0b"] if dice.random() < 0.02 else [" "]).join(
        _field(dice, i) for i in range(5))


def _broken(dice):
    """An expression with a few random edits."""
    text = list(_expression(dice))
    for _ in range(dice.randint(1, 3)):
        at = dice.randrange(len(text))
        text[at:at + dice.choice([0, 1])] = dice.choice(list("0123456789*?/-, @+ALZ") + ["99"])
    return "".join(text)


def _instant(dice):
    return dice.randint(calendar.timegm((2020, 1, 1, 0, 0, 0)),
                        calendar.timegm((2032, 1, 1, 0, 0, 0)))


def _has_seven(expression):
    weekday = expression.split()[-1]
    return re.search(r"(^|[,-])0*7", weekday) is not None


# What the library accepts and steward does not: see docs/eru.md.
SLIPS = re.compile(r"(^|\s),|,,|,(\s|$)"        # empty items
                   r"|[*?]-"                    # the text after "*-" is ignored
                   r"|(^|[\s,/-])\+\d"          # a sign
                   r"|^@every\s|^(CRON_)?TZ=")


def test_validity_equals_the_cron_library(ours, theirs):
    dice = random.Random(SEED)
    lines = [(_broken(dice) if dice.random() < 0.7 else _expression(dice), "UTC", 0, 1)
             for _ in range(COUNT)]
    lines = [line for line in lines if "\t" not in line[0]]
    more = fewer = 0
    for line, we, they in zip(lines, ours(lines), theirs(lines)):
        text = line[0]
        if we == they or isinstance(we, str) == isinstance(they, str):
            continue
        if isinstance(they, str):  # accepted only by steward
            assert _has_seven(text) or text.strip() in MACROS, (text, they)
            more += 1
        else:
            assert SLIPS.search(text), (text, we)
            fewer += 1
    print(f"{len(lines)} expressions; taken only here {more}, only there {fewer}")


def _clock_changes(zone, first, last):
    """Whether the zone's clock is set between two instants, extended by two days on either side."""
    info = zoneinfo.ZoneInfo(zone)
    day = first - 2 * 86400
    offsets = set()
    while day <= last + 2 * 86400:
        offsets.add(datetime.datetime.fromtimestamp(day, info).utcoffset())
        day += 3600
    return len(offsets) > 1


def test_next_instant_equals_the_cron_library(ours, theirs):
    """The next instant of each.  If they differ, a clock was set nearby."""
    dice = random.Random(SEED + 1)
    lines = []
    while len(lines) < COUNT:
        text = _expression(dice)
        if not _has_seven(text):
            lines.append((text, dice.choice(ZONES), _instant(dice), 1))
    at_changes = same = 0
    for line, we, they in zip(lines, ours(lines), theirs(lines)):
        if we == they:
            same += 1
            continue
        assert not isinstance(we, str) and not isinstance(they, str), (line, we, they)
        assert we and they, (line, we, they)
        near = min(we[0], they[0])
        assert max(we[0], they[0]) - near <= 2 * 86400 or \
            _clock_changes(line[1], near, near), (line, we, they)
        assert _clock_changes(line[1], near, near), (line, we, they)
        at_changes += 1
    print(f"{len(lines)} questions: {same} the same, {at_changes} differ at changes of the clocks")
    assert at_changes < COUNT // 20


def _changes(zone):
    """(hour, whether forward) of each change of the zone's clock, 2024 to 2026."""
    info, at = zoneinfo.ZoneInfo(zone), calendar.timegm((2024, 1, 1, 0, 0, 0))
    found, before = [], None
    while at < calendar.timegm((2027, 1, 1, 0, 0, 0)):
        offset = datetime.datetime.fromtimestamp(at, info).utcoffset()
        if before is not None and offset != before:
            found.append((at, offset > before))
        before = offset
        at += 3600
    return found


def test_daily_schedule_around_clock_changes(ours, theirs):
    """Daily schedules around a change: no day is lost or doubled, except by the rule."""
    dice = random.Random(SEED + 5)
    kinds = {}
    for zone in ZONES:
        for change, forward in _changes(zone):
            lines = [(f"{dice.randint(0, 59)} {hour} * * *", zone, change - 30 * 3600, 3)
                     for hour in range(24)]
            for line, we, they in zip(lines, ours(lines), theirs(lines)):
                assert len(we) == 3 and all(20 * 3600 <= b - a <= 28 * 3600
                                            for a, b in zip(we, we[1:])), (line, we)
                if we != they:
                    assert any(abs(n - change) <= 26 * 3600 for n in set(we) ^ set(they)), line
                    how = ("forward" if forward else "back",
                           "lost" if they[-1] > we[-1] else "other")
                    kinds[how] = kinds.get(how, 0) + 1
    print(f"differences: {kinds}")


def test_series_equals_the_cron_library_without_clock_change(ours, theirs):
    dice = random.Random(SEED + 2)
    lines = []
    while len(lines) < COUNT // 10:
        text = _expression(dice)
        if not _has_seven(text):
            lines.append((text, dice.choice(["UTC", "Asia/Kolkata", "Etc/GMT+7"]),
                          _instant(dice), 20))
    assert ours(lines) == theirs(lines)


def test_leap_day_schedule_beyond_five_years(ours, theirs):
    """The library stops its search after five years."""
    after = calendar.timegm((2097, 1, 1, 0, 0, 0))
    line = ("0 0 29 2 *", "UTC", after, 1)
    assert ours([line]) == [[calendar.timegm((2104, 2, 29, 0, 0, 0))]]
    assert theirs([line]) == [[]]


# --- systemd


def _members(dice, low, high):
    chosen = sorted(dice.sample(range(low, high + 1), dice.choice([1, 1, 2, 3])))
    return chosen


def _systemd_pair(dice):
    """The same schedule in both syntaxes; never both day fields."""
    minutes, hours = _members(dice, 0, 59), _members(dice, 0, 23)
    months = _members(dice, 1, 12) if dice.random() < 0.4 else None
    days = _members(dice, 1, 31) if dice.random() < 0.4 else None
    weekdays = _members(dice, 0, 6) if days is None and dice.random() < 0.5 else None

    def numbers(some):
        return ",".join(map(str, some)) if some is not None else "*"
    cron = " ".join([numbers(minutes), numbers(hours), numbers(days), numbers(months),
                     numbers(weekdays)])
    if months and days and all(d > calendar.monthrange(2024, m)[1] for m in months for d in days):
        return _systemd_pair(dice)
    week = ",".join(NAMES[4][d].title() for d in weekdays) + " " if weekdays else ""
    return cron, f"{week}*-{numbers(months)}-{numbers(days)} {numbers(hours)}:{numbers(minutes)}:00"


def _systemd_next(expression, zone, after):
    base = datetime.datetime.fromtimestamp(after, datetime.timezone.utc)
    result = subprocess.run(
        ["systemd-analyze", "calendar", "--base-time", base.strftime("%Y-%m-%d %H:%M:%S UTC"),
         f"{expression} {zone}"], capture_output=True, text=True, check=True, timeout=60,
        env=dict(os.environ, TZ="UTC", LC_ALL="C"))
    found = re.search(r"Next elapse: \w+ (\S+ \S+) UTC", result.stdout)
    if not found:
        return None
    return calendar.timegm(datetime.datetime.fromisoformat(found[1]).timetuple())


def test_next_instant_equals_systemd(ours):
    if not shutil.which("systemd-analyze"):
        pytest.skip("needs systemd-analyze")
    dice = random.Random(SEED + 3)
    questions = []
    for _ in range(max(COUNT // 60, 50)):
        cron, event = _systemd_pair(dice)
        questions.append((cron, event, dice.choice(ZONES), _instant(dice)))
    answers = ours([(cron, zone, after, 1) for cron, _, zone, after in questions])
    at_changes = 0
    for (cron, event, zone, after), we in zip(questions, answers):
        they = _systemd_next(event, zone, after)
        if [they] == we:
            continue
        assert they and we, (cron, event, zone, after, we, they)
        assert _clock_changes(zone, min(we[0], they), min(we[0], they)), \
            (cron, event, zone, after, we, they)
        at_changes += 1
    print(f"{len(questions)} questions, {at_changes} differ at changes of the clocks")
    assert at_changes < len(questions) // 20


# --- how fast


def test_next_instant_is_computed_quickly(ours, steward_binary):
    """Under 20 us on average and 2 ms at most; ten times that in a build with sanitizers."""
    binary = steward_binary.parents[1] / "tests" / "integration" / "cron_probe"
    dice = random.Random(SEED + 4)
    lines = [(_expression(dice), dice.choice(ZONES), _instant(dice), 1) for _ in range(COUNT)]
    lines += [("0 0 29 2 *", "UTC", calendar.timegm((2096, 3, 1, 0, 0, 0)), 1)] * 100
    text = "".join("\t".join(str(part) for part in line) + "\n" for line in lines)
    result = subprocess.run([binary, "--time"], input=text, capture_output=True, text=True,
                            check=True, timeout=300)
    calls, average, worst = map(int, result.stdout.split())
    print(f"{calls} calls: {average} ns on average, {worst} ns at worst")
    assert calls > COUNT // 2
    slow = 10 if b"__asan_init" in binary.read_bytes() else 1
    assert average < 20_000 * slow and worst < 2_000_000 * slow
