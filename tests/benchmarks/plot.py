# SPDX-License-Identifier: Apache-2.0

"""Draw the table of :mod:`tests.benchmarks.scale` as a picture.

``python -m tests.benchmarks.plot`` draws it anew. A panel for each number of
hosts, one above the other to be readable on a narrow screen: how many times
faster than nova's each part is, by the number of aggregates. Both axes are
logarithmic.
"""

import csv
import math
import pathlib

STATIC = pathlib.Path(__file__).parents[2] / 'doc' / 'source' / '_static'
TABLE = STATIC / 'scale.csv'
PICTURE = STATIC / 'scale.svg'
COLUMNS = (
    'part',
    'hosts',
    'aggregates',
    'nova_ms',
    'ours_ms',
    'ratio',
    'nova_kib',
    'ours_kib',
)

#: Colours that are told apart without red and green, on white and on black.
LINES = {
    'isolate_aggregates': ('#0072b2', '#2f9be0'),
    'isolation, both stages': ('#56b4e9', '#a5d8f6'),
    'AggregateInstanceTypeFilter': ('#d55e00', '#f0873a'),
    'ServerGroupAntiAffinityFilter': ('#6a3d9a', '#c39bea'),
}
# Text, the axis where both cost the same, and the other lines.
TEXT = ('#222222', '#dddddd')
AXIS = ('#333333', '#cccccc')
GRID = ('#dddddd', '#444444')

WIDTH, HEIGHT, GAP = 360, 190, 70
LEFT, TOP = 56, 110
RATIOS = (0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500)

Rows = list[dict[str, str]]


def read() -> Rows:
    """Return the rows of the table."""
    with TABLE.open(newline='') as file:
        return list(csv.DictReader(file))


def draw(rows: Rows) -> str:
    """Return the picture, as SVG."""
    rows = [row for row in rows if row['part'] in LINES]
    sizes = sorted({int(row['hosts']) for row in rows})
    counts = sorted({int(row['aggregates']) for row in rows})
    width = LEFT + WIDTH + 10
    height = TOP + len(sizes) * (HEIGHT + GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} '
        f'{height}" font-family="sans-serif" font-size="12">',
        '<title>How many times faster than nova each part is</title>',
        _style(),
        *_legend(),
    ]
    for number, size in enumerate(sizes):
        top = TOP + number * (HEIGHT + GAP)
        parts += _panel(top, size, counts)
        for line, name in enumerate(LINES):
            points = [
                (
                    _across(int(row['aggregates']), counts),
                    top + _down(float(row['ratio'])),
                )
                for row in rows
                if row['part'] == name and int(row['hosts']) == size
            ]
            path = ' '.join(f'{x:.1f},{y:.1f}' for x, y in points)
            parts.append(f'<polyline class="line{line}" points="{path}"/>')
            parts += [
                f'<circle class="line{line}" cx="{x:.1f}" cy="{y:.1f}" '
                f'r="3.5"/>'
                for x, y in points
            ]
    return '\n'.join([*parts, '</svg>', ''])


def _style() -> str:
    """Return the colours, for pages that are light and for dark ones."""

    def rules(dark: int) -> str:
        return f'text {{ fill: {TEXT[dark]} }} ' + ' '.join(
            f'.{name} {{ stroke: {colours[dark]} }}'
            for name, colours in [
                ('axis', AXIS),
                ('grid', GRID),
                *(
                    (f'line{number}', colours)
                    for number, colours in enumerate(LINES.values())
                ),
            ]
        )

    return (
        f'<style>polyline {{ fill: none; stroke-width: 2 }} '
        f'line[class^=line] {{ stroke-width: 3 }} {rules(0)} '
        f'circle {{ stroke-width: 2; fill: none }} '
        f'@media (prefers-color-scheme: dark) {{ {rules(1)} }}</style>'
    )


def _legend() -> list[str]:
    found = []
    for number, name in enumerate(LINES):
        y = 18 + 18 * number
        found += [
            f'<line class="line{number}" x1="{LEFT}" y1="{y - 4}" '
            f'x2="{LEFT + 24}" y2="{y - 4}"/>',
            f'<text x="{LEFT + 30}" y="{y}">{name}</text>',
        ]
    return found


def _panel(top: float, size: int, counts: list[int]) -> list[str]:
    middle, bottom = LEFT + WIDTH / 2, top + HEIGHT
    found = [
        f'<text x="{middle}" y="{top - 10}" text-anchor="middle" '
        f'font-weight="bold">{size:,} hosts</text>',
        f'<text x="{middle}" y="{bottom + 36}" text-anchor="middle">'
        f'aggregates</text>',
    ]
    for ratio in RATIOS:
        y = top + _down(ratio)
        found += [
            f'<line class="{"axis" if ratio == 1 else "grid"}" x1="{LEFT}" '
            f'y1="{y:.1f}" x2="{LEFT + WIDTH}" y2="{y:.1f}"/>',
            f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">'
            f'×{ratio:g}</text>',
        ]
    found += [
        f'<text x="{_across(count, counts):.1f}" y="{bottom + 18}" '
        f'text-anchor="middle">{count:,}</text>'
        for count in counts
    ]
    return found


def _across(count: int, counts: list[int]) -> float:
    margin = 20
    share = math.log(count / counts[0]) / math.log(counts[-1] / counts[0])
    return LEFT + margin + share * (WIDTH - 2 * margin)


def _down(ratio: float) -> float:
    share = math.log(ratio / RATIOS[0]) / math.log(RATIOS[-1] / RATIOS[0])
    return HEIGHT * (1 - share)


if __name__ == '__main__':
    PICTURE.write_text(draw(read()))
