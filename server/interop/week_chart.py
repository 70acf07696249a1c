"""Draws the samples of week.py as an SVG: a panel for each number, with its limit at the end as a dashed line."""

WIDTH, HEIGHT, LEFT, GAP = 720, 90, 110, 30
UNITS = {"memory": " MiB", "store": " MiB"}


def write(path, samples, limits):
    length = max(sample["seconds"] for sample in samples) or 1
    parts = []
    for row, (what, limit) in enumerate(limits.items()):
        top = GAP + row * (HEIGHT + GAP)
        most = max(limit, max(sample[what] for sample in samples), 1)
        y = lambda value: top + HEIGHT * (1 - value / most)
        points = " ".join(f"{LEFT + WIDTH * sample['seconds'] / length:.1f},{y(sample[what]):.1f}" for sample in samples)
        parts += [
            f'<rect x="{LEFT}" y="{top}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#ccc"/>',
            f'<line x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{y(limit):.1f}" y2="{y(limit):.1f}" stroke="#c33" stroke-dasharray="4"/>',
            f'<polyline points="{points}" fill="none" stroke="#246" stroke-width="1.2"/>',
            f'<text x="{LEFT - 8}" y="{top + 12}" text-anchor="end">{most:.0f}{UNITS.get(what, "")}</text>',
            f'<text x="{LEFT - 8}" y="{top + HEIGHT / 2}" text-anchor="end">{what}</text>',
            f'<text x="{LEFT - 8}" y="{top + HEIGHT}" text-anchor="end">0</text>',
        ]
    height = GAP + len(limits) * (HEIGHT + GAP)
    parts += [f'<text x="{LEFT}" y="{height - 8}">0 s</text>',
              f'<text x="{LEFT + WIDTH}" y="{height - 8}" text-anchor="end">{length:.0f} s</text>']
    with open(path, "w") as file:
        file.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 20}" height="{height}" '
                   'font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="#fff"/>\n'
                   + "\n".join(parts) + "\n</svg>\n")
