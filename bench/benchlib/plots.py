# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Plots, by gnuplot: bandwidth against size, latency distribution, scaling, overview."""

import shutil
import subprocess

from .environment import PLACES
from .plan import SUBJECTS, Point, size_text

#: Told apart by those who see no colours, too: dash and mark differ
STYLES = {"sroce": ("#0060b0", 1, 7), "sroce-own": ("#009070", 4, 5),
          "rxe": ("#d04000", 2, 9), "tcp": ("#505050", 5, 13)}
HEAD = """\
set encoding utf8
set terminal svg size {width},{height} font 'Helvetica,14' background '#ffffff' enhanced
set output '{file}'
set title "{title}\\n{{/*0.75 {where}}}"
set grid xtics ytics lc rgb '#d8d8d8'
set border 3 lc rgb '#404040'
set tics nomirror
"""
BYTE_TICS = (1, 1 << 4, 1 << 8, 1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 23)


def write(results, directory):
    """Write the plots for which there are figures."""
    plots = {}
    for op in ("write", "read", "send"):
        for mtu in (1500, 4200, 9000):
            plots[f"bandwidth-{op}-{mtu}"] = _bandwidth(results, op, mtu)
    plots["latency"] = _latency(results)
    plots["scaling"] = _scaling(results)
    plots["overview"] = _overview(results)
    gnuplot = shutil.which("gnuplot")
    for name, commands in plots.items():
        if not commands:
            continue
        script = directory / f"{name}.gp"
        script.write_text(commands, encoding="utf-8")
        if gnuplot:
            subprocess.run([gnuplot, script.name], cwd=directory, check=True)
    if not gnuplot:
        print("bench: no gnuplot installed: no plots, only their scripts (*.gp)", flush=True)


def _head(results, name, title, size=(800, 500)):
    facts = results.facts
    where = f"{PLACES[facts['place']][0]}, Linux {facts['kernel']}, {facts['CPUs']} CPUs"
    if "machine" in facts:
        where += f"; {facts['machine']}"
    return HEAD.format(width=size[0], height=size[1], file=f"{name}.svg", title=_escape(title),
                       where=_escape(where))


def _escape(text):
    return text.replace("_", r"\\_").replace("@", " ").replace('"', "'")


def _blocks(series):
    """Data blocks $NAME for gnuplot, and the plot clauses that draw them."""
    blocks, clauses = [], []
    for subject in SUBJECTS:
        rows = series.get(subject.name)
        if not rows:
            continue
        block = "$" + subject.name.replace("-", "_")
        blocks += [f"{block} << EOD", *(" ".join(f"{value:.6g}" for value in row) for row in rows),
                   "EOD"]
        colour, dash, mark = STYLES[subject.name]
        clauses.append((block, f"lc rgb '{colour}' dt {dash} lw 2.5",
                        f"pt {mark} ps 0.8", _escape(subject.label)))
    return "\n".join(blocks) + "\n", clauses


def _with_error_bars(clauses):
    """Lines through medians, bars from the least to the greatest."""
    return "plot " + ", \\\n     ".join(
        f"{block} using 1:2:3:4 with yerrorbars {style} {mark} title \"{label}\", "
        f"{block} using 1:2 with lines {style} notitle"
        for block, style, mark, label in clauses) + "\n"


def _spread_row(x, figure, unit):
    return (x, figure.median / unit, min(figure.values) / unit, max(figure.values) / unit)


def _bandwidth(results, op, mtu):
    """Bandwidth against message size; nothing with fewer than three sizes."""
    series = {}
    for subject in SUBJECTS:
        wanted = "stream" if subject.name == "tcp" else op
        points = [point for point in results.points
                  if point == Point("bandwidth", op=wanted, size=point.size, mtu=mtu)]
        rows = [_spread_row(point.size, results.figures[subject.name, point, "bandwidth"], 1e6)
                for point in sorted(points, key=lambda point: point.size)
                if (subject.name, point, "bandwidth") in results.figures]
        if len(rows) >= 3:
            series[subject.name] = rows
    if len(series) < 2:
        return None
    blocks, clauses = _blocks(series)
    tics = ", ".join(f"'{size_text(size)}' {size}" for size in BYTE_TICS)
    return (blocks + _head(results, f"bandwidth-{op}-{mtu}",
                           f"RC {op.upper()} and TCP: bandwidth by message size, MTU {mtu}")
            + f"set logscale xy\nset xtics ({tics})\nset xlabel 'message size'\n"
              "set ylabel 'MB/s (10^6 bytes a second)'\nset format y '%g'\n"
              "set mytics 10\nset key bottom right\nset xrange [1.5:1.2e7]\n"
            + _with_error_bars(clauses))


def _latency(results):
    """The share of messages that took longer, against the time."""
    for point in (Point("latency", op="send", size=2), Point("latency", op="write", size=2)):
        series = {}
        for subject in SUBJECTS:
            own = point.of_tcp() if subject.name == "tcp" else point
            rows = [(seconds * 1e6, 1 - share) for share, seconds
                    in results.distributions.get((subject.name, own), []) if share < 1]
            if rows:
                series[subject.name] = rows
        if len(series) >= 2:
            break
    else:
        return None
    blocks, clauses = _blocks(series)
    # a label is a format, too
    tics = ("'all' 1, 'half (median)' 0.5, '10 %%' 0.1, '1 %%' 0.01, '0.1 %%' 0.001")
    lines = "plot " + ", \\\n     ".join(f"{block} using 1:2 with lines {style} title \"{label}\""
                                         for block, style, _, label in clauses) + "\n"
    return (blocks + _head(results, "latency", f"Latency of {point.op.upper()}, "
                           f"{point.size} bytes, polling: how many take longer")
            + f"set logscale xy\nset ytics ({tics})\nset yrange [0.0005:1.2]\n"
              "set xlabel 'half a round trip, microseconds'\n"
              "set ylabel 'share of messages that take longer'\nset mxtics 10\n"
              "set xtics (1,2,5,10,20,50,100,200,500,1000,2000,5000,10000,20000,50000,100000)\n"
              "set key top right\n" + lines)


def _scaling(results):
    """Bandwidth against the number of queue pairs."""
    series, counts = {}, set()
    for subject in SUBJECTS:
        points = [point for point in results.points
                  if point == Point("bandwidth", queue_pairs=point.queue_pairs)]
        rows = [_spread_row(point.queue_pairs,
                            results.figures[subject.name, point, "bandwidth"], 1e6)
                for point in sorted(points, key=lambda point: point.queue_pairs)
                if (subject.name, point, "bandwidth") in results.figures]
        if len(rows) >= 2:
            series[subject.name] = rows
            counts.update(row[0] for row in rows)
    if not series:
        return None
    blocks, clauses = _blocks(series)
    tics = ", ".join(str(count) for count in sorted(counts))
    return (blocks + _head(results, "scaling",
                           "64 KB WRITE over many queue pairs, one thread, MTU 4200")
            + f"set logscale x 2\nset xtics ({tics})\nset xlabel 'queue pairs'\n"
              "set ylabel 'MB/s, all together'\nset yrange [0:*]\nset key outside bottom center "
              f"horizontal\nset xrange [0.8:{max(counts) * 1.25}]\n" + _with_error_bars(clauses))


def _overview(results):
    """Bars: 64 KB by operation and MTU."""
    groups = [(op, mtu) for mtu in (1500, 4200, 9000) for op in ("write", "read", "send")]
    rows = []
    for op, mtu in groups:
        figures = [results.get(subject.name, Point("bandwidth", op=op, mtu=mtu), "bandwidth")
                   for subject in SUBJECTS]
        if figures[0]:
            values = (f"{figure.median / 1e6:.4g} {min(figure.values) / 1e6:.4g} "
                      f"{max(figure.values) / 1e6:.4g}" if figure else "? ? ?"
                      for figure in figures)
            rows.append(f'"{op.upper()}\\nMTU {mtu}" ' + " ".join(values))
    if not rows:
        return None
    clauses = ", \\\n     ".join(
        f"$rows using {2 + 3 * number}:{3 + 3 * number}:{4 + 3 * number}"
        + ":xticlabels(1)" * (number == 0)
        + f" lc rgb '{STYLES[subject.name][0]}' title \"{_escape(subject.label)}\""
        for number, subject in enumerate(SUBJECTS))
    return ("$rows << EOD\n" + "\n".join(rows) + "\nEOD\n"
            + _head(results, "overview", "64 KB messages: bandwidth by operation and MTU")
            + "set style data histograms\nset style histogram errorbars gap 1 lw 1\n"
              "set style fill solid 0.85 border -1\nset boxwidth 0.9\nset yrange [0:*]\n"
              "set ylabel 'MB/s (10^6 bytes a second)'\nset grid noxtics\n"
              "set key outside bottom center horizontal\nset datafile missing '?'\n"
            + f"plot {clauses}\n")
