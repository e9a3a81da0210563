# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Medians and spread of what was measured, as a table and as CSV."""

import csv
import dataclasses
import json
import statistics

from .environment import PLACES
from .plan import SUBJECTS, Point

POINT_FIELDS = [field.name for field in dataclasses.fields(Point)]
_NUMBERS = {field.name for field in dataclasses.fields(Point) if field.type is int}
#: (title, what, the metrics that the table shows, whether more is better)
SECTIONS = (
    ("Bandwidth", "bandwidth", ("bandwidth",), True),
    ("Messages a second, small messages", "bandwidth", ("rate",), True),
    ("Latency (half a round trip)", "latency", ("median", "99 %", "99.9 %"), False),
    ("Streams, each with a process and a queue pair of its own", "streams", ("bandwidth",), True),
    ("CPU time per GB, waiting by events", "cpu", ("sender", "receiver", "machine"), False),
    ("Kernel memory of an idle queue pair", "memory", ("beyond rings", "rings"), False),
    ("rdma_cm connections a second", "connections", ("connections",), True),
)
#: Messages that are small, for the section on their rate
SMALL = 64
RATIOS = (("sroce", "rxe"), ("sroce", "tcp"), ("sroce-own", "rxe"), ("sroce-own", "tcp"))


def point_values(point):
    """The columns of POINT in CSV."""
    return dataclasses.astuple(point)


def _point(row):
    return Point(**{name: int(row[name]) if name in _NUMBERS else row[name]
                    for name in POINT_FIELDS})


@dataclasses.dataclass(frozen=True)
class Figure:
    """One figure of one subject, over all rounds."""

    values: tuple

    @property
    def median(self):
        """The median over the rounds."""
        return statistics.median(self.values)

    @property
    def spread(self):
        """Half of what lies between the least and the greatest, as a share of the median."""
        return (max(self.values) - min(self.values)) / 2 / abs(self.median or 1)


class Results:
    """All that was measured, as read from DIRECTORY."""

    def __init__(self, directory):
        values = {}
        #: metric -> unit
        self.units = {}
        with open(directory / "raw.csv", newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                key = row["subject"], _point(row), row["metric"]
                values.setdefault(key, []).append(float(row["value"]))
                self.units[row["metric"]] = row["unit"]
        self.figures = {key: Figure(tuple(numbers)) for key, numbers in values.items()}
        self.points = list(dict.fromkeys(point for _, point, _ in self.figures))
        #: (subject, point) -> [(share of messages, seconds)]
        self.distributions = {}
        with open(directory / "latency.csv", newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                self.distributions.setdefault((row["subject"], _point(row)), []).append(
                    (float(row["share"]), float(row["seconds"])))
        self.facts = {}
        for name in ("host.json", "environment.json"):
            if (directory / name).exists():
                self.facts.update(json.loads((directory / name).read_text(encoding="utf-8")))

    def get(self, subject, point, metric):
        """The figure of SUBJECT, a name, or None; for TCP that of its counterpart."""
        if subject == "tcp":
            point = point.of_tcp()
        return self.figures.get((subject, point, metric))


def figure_text(value, unit):
    """VALUE in a unit that is good to read."""
    if unit == "B/s":
        return f"{_round(value / 1e6)} MB/s"
    if unit == "s":
        return f"{_round(value * 1e6)} us"
    if unit in ("messages/s", "1/s"):
        return f"{value:,.0f} /s"
    if unit == "s/GB":
        return f"{value:.2f} s"
    return f"{value:,.0f} {unit}"


def _round(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _ratio_text(results, point, metric, ours, theirs):
    pair = [results.get(name, point, metric) for name in (ours, theirs)]
    if None in pair or pair[1].median <= 0:
        return ""
    return f"{pair[0].median / pair[1].median:.2f}"


def machine_text(facts):
    """Sentences on where and when it was measured, and what that distorts."""
    place, distortion = PLACES[facts["place"]]
    lines = [f"Measured in {place}: Linux {facts['kernel']}, {facts['CPUs']} CPUs, rdma-core "
             f"{facts['rdma-core']}, perftest {facts['perftest']}."]
    if "machine" in facts:
        lines.append(f"On {facts['machine']}, on {facts['date']}, revision "
                     f"{facts['revision']}, load when it began {facts['load']}.")
    lines.append(distortion)
    lines.append(f"Plan {facts['plan']}: {facts['rounds']} of {facts['planned rounds']} rounds in "
                 f"{facts['seconds']} s.")
    lines += [f"No figure: {subject}: {what}" for subject, what in facts["failures"]]
    lines += [f"Not measured: {label}: {why}" for label, why in facts["left out"].items()]
    return lines


def _lines_of(results, section):
    """The rows of a section: (point, metric)."""
    _, what, metrics, _ = section
    for point in results.points:
        # TCP's figures are in the lines of what they are compared with
        if point.what != what or point.op == "stream":
            continue
        if metrics == ("rate",) and point.size > SMALL:
            continue
        for metric in metrics:
            yield point, metric


def table(results):
    """The lines of the table."""
    lines = [*machine_text(results.facts), "",
             "Medians over the rounds; +- is half the distance from the least to the greatest, "
             "in percent", "of the median (nothing where there was one round).", ""]
    heads = [subject.label for subject in SUBJECTS]
    heads += [f"{_short(ours)}/{_short(theirs)}" for ours, theirs in RATIOS]
    for section in SECTIONS:
        rows = [(point.title() + (f", {metric}" if len(section[2]) > 1 else ""),
                 *_cells(results, point, metric))
                for point, metric in _lines_of(results, section)]
        if rows:
            better = "more" if section[3] else "less"
            lines += _format([(f"{section[0]} ({better} is better)", *heads), *rows]) + [""]
    return lines


def _cells(results, point, metric):
    unit = results.units[metric]
    for subject in SUBJECTS:
        figure = results.get(subject.name, point, metric)
        if figure is None:
            yield "-"
        elif len(figure.values) == 1:
            yield figure_text(figure.median, unit)
        else:
            yield f"{figure_text(figure.median, unit)} +-{figure.spread:.0%}"
    for ours, theirs in RATIOS:
        yield _ratio_text(results, point, metric, ours, theirs)


def _short(name):
    return {"sroce-own": "own", "tcp": "TCP"}.get(name, name)


def _format(rows):
    """ROWS of strings as aligned lines, the first column to the left, with a rule."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join([row[0].ljust(widths[0]),
                        *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))]).rstrip()
             for row in rows]
    return [lines[0], "-" * max(map(len, lines)), *lines[1:]]


def write(results, directory):
    """Write table.txt and summary.csv."""
    (directory / "table.txt").write_text("\n".join(table(results)) + "\n", encoding="utf-8")
    with open(directory / "summary.csv", "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["subject", *POINT_FIELDS, "metric", "unit", "rounds", "median", "least",
                       "greatest"])
        for (subject, point, metric), figure in results.figures.items():
            rows.writerow([subject, *point_values(point), metric, results.units[metric],
                           len(figure.values), f"{figure.median:.6g}",
                           f"{min(figure.values):.6g}", f"{max(figure.values):.6g}"])
