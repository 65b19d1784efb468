#!/usr/bin/env python3
"""Draws notes/pictures/turning.png from measured.json: where two GPUs begin to win, and where gathers hide. Prints at which width.

    python3 experiments/turning/draw.py [--svg FILE]      (the PNG needs rsvg-convert)
"""
import argparse
import json
import os
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
PICTURE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "notes", "pictures", "turning.png")
ONE, TWO, INK, PALE = "#1f6fb4", "#c8501e", "#222222", "#dddddd"
WIDTH, HEIGHT, LEFT, TOP, BOTTOM, GAP = 1240, 460, 70, 64, 70, 90
PANEL = (WIDTH - 2 * LEFT - GAP) / 2


class Panel:
    def __init__(self, left, across, up, title, below):
        self.left, self.across, self.up, self.title, self.below = left, across, up, title, below

    def at(self, x, y):
        (x0, x1), (y0, y1) = self.across, self.up
        return self.left + (x - x0) / (x1 - x0) * PANEL, HEIGHT - BOTTOM - (y - y0) / (y1 - y0) * (HEIGHT - TOP - BOTTOM)

    def line(self, points, colour, dashes=""):
        places = " ".join("%.1f,%.1f" % self.at(*point) for point in points)
        return '<polyline points="%s" fill="none" stroke="%s" stroke-width="2.2"%s/>' % (places, colour, dashed(dashes))

    def ranges(self, points, colour):
        out = []
        for x, low, high in points:
            (a, b), (_, c) = self.at(x, low), self.at(x, high)
            out.append('<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="2.2"/>' % (a, b, a, c, colour))
            out.append('<circle cx="%.1f" cy="%.1f" r="4" fill="%s"/>' % (a, (b + c) / 2, colour))
        return "".join(out)

    def rings(self, points, colour):
        return "".join('<circle cx="%.1f" cy="%.1f" r="5" fill="white" stroke="%s" stroke-width="2"/>' % (*self.at(*point), colour) for point in points)

    def frame(self, xs, ys, unit):
        out = [text(self.left, TOP - 34, self.title, 19, "start", True), text(self.left + PANEL / 2, HEIGHT - 18, self.below, 16, "middle")]
        for x in xs:
            a, b = self.at(x, self.up[0])
            out.append(text(a, b + 22, str(x), 14, "middle"))
        for y in ys:
            a, b = self.at(self.across[0], y)
            out.append('<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"/>' % (a, b, a + PANEL, b, PALE))
            out.append(text(a - 8, b + 5, ("%g" % y) + unit, 14, "end"))
        return "".join(out)


def text(x, y, words, size, anchor, bold=False):
    return '<text x="%.1f" y="%.1f" font-family="DejaVu Sans"%s font-size="%d" fill="%s" text-anchor="%s">%s</text>' % (
        x, y, ' font-weight="bold"' if bold else "", size, INK, anchor, words)


def dashed(dashes):
    return ' stroke-dasharray="%s"' % dashes if dashes else ""


def legend(panel, entries):
    out = []
    for row, (words, colour, dashes) in enumerate(entries):
        y = TOP + 6 + 22 * row
        out.append('<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="2.2"%s/>' % (
            panel.left + 16, y, panel.left + 52, y, colour, dashed(dashes)))
        out.append(text(panel.left + 60, y + 5, words, 14, "start"))
    return "".join(out)


def svg(data):
    modelled, as_graph = "7,5", "2,4"
    widths, graphs = ([row for row in data[name]["rows"] if row["width"] <= 896] for name in ("widths", "graphs"))
    hide = data["hide"]
    first = Panel(LEFT, (128, 896), (0.5, 2.5), "Lab 02: from which width on do two GPUs win?", "width of the tutor, 2048 tokens a step")
    second = Panel(LEFT + PANEL + GAP, (1024, 3072), (0, 50), "Lab 04: from how many tokens on do gathers hide?", "tokens a GPU, gpt-1.3b, fsdp 2")
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d"><rect width="%d" height="%d" fill="white"/>' % (WIDTH, HEIGHT, WIDTH, HEIGHT)]
    out.append(first.frame([128, 256, 512, 640, 768, 896], [0.5, 1, 1.5, 2, 2.5], " ms"))
    for place, (name, colour) in enumerate((("tp1", ONE), ("tp2", TWO))):
        out.append(first.line([(row["width"], row["modelled"][place]) for row in widths], colour, modelled))
        out.append(first.line([(row["width"], row[name]) for row in graphs if row["width"] >= 704], colour, as_graph))   # none was measured between 128 and that
        out.append(first.rings([(row["width"], row[name]) for row in graphs], colour))
        out.append(first.line([(row["width"], sum(row[name]) / 2) for row in widths], colour))
        out.append(first.ranges([(row["width"], min(row[name]), max(row[name])) for row in widths], colour))
    out.append(legend(first, [("one GPU, measured", ONE, ""), ("two GPUs, measured", TWO, ""), ("as a graph, measured (rings)", INK, as_graph), ("modelled", INK, modelled)]))
    out.append(second.frame([1024, 1536, 2048, 2560, 3072], [0, 10, 20, 30, 40, 50], " %"))
    rows = hide["rows"]
    out.append(second.line([(row["tokens"], 100 * row["modelled"]) for row in rows], ONE, modelled))
    out.append(second.line([(row["tokens"], 50 * (row["measured"][0] + row["measured"][-1])) for row in rows], ONE))
    out.append(second.ranges([(row["tokens"], 100 * row["measured"][0], 100 * row["measured"][-1]) for row in rows], ONE))
    (x, low), (_, high) = second.at(hide["predicted"], 0), second.at(hide["predicted"], 36)
    out.append('<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="1.5" stroke-dasharray="2,4"/>' % (x, low, x, high, INK))
    out.append(text(x + 6, high + 14, "the rule: %.0f" % hide["predicted"], 14, "start"))
    out.append('<g transform="translate(%.1f 0)">' % (PANEL - 330) + legend(second, [("gathers open, measured", ONE, ""), ("modelled", ONE, modelled)]) + "</g>")
    return "".join(out) + "</svg>\n"


def turn(rows, step):
    """The width at which the steps of one GPU and of two are equal, where lines between neighbours cross; step(row) gives both."""
    for before, row in zip(rows, rows[1:]):
        (a, b), (c, d) = step(before), step(row)
        if b > a and d <= c:
            return before["width"] + (row["width"] - before["width"]) * (b - a) / (b - a + c - d)
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--svg")
    asked = parser.parse_args()
    with open(os.path.join(HERE, "measured.json"), encoding="utf-8") as file:
        data = json.load(file)
    drawing = svg(data)
    for name, middle in (("widths", lambda turns: sum(turns) / 2), ("graphs", lambda turns: turns)):
        rows = data[name]["rows"]
        print("%s: equal at %.0f measured, at %.0f modelled" % (name, turn(rows, lambda row: (middle(row["tp1"]), middle(row["tp2"]))), turn(rows, lambda row: row["modelled"])))
    if asked.svg:
        with open(asked.svg, "w", encoding="utf-8") as file:
            file.write(drawing)
        return
    subprocess.run(["rsvg-convert", "--output", PICTURE], input=drawing.encode(), check=True)


if __name__ == "__main__":
    main()
