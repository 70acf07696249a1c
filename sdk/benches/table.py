#!/usr/bin/env python3
"""Prints what `cargo bench -p acp-sdk --bench messages` measured as the tables of docs/performance.md.

    cargo bench -p acp-sdk --bench messages && python3 sdk/benches/table.py [target/criterion]

Medians in ns. In the first table the ratios are official to ours, above 1 where ours is faster; in
the second they are what an oddity makes of the time. A figure that was not measured is left out.
"""

import json
import sys
from pathlib import Path

COLUMNS = ["ours", "ours, by serde_json", "official"]
WHO = ["ours", "official"]


def measured(root):
    """The median of each message, by what was done with it and by whom."""
    found = {}
    for file in root.glob("*/*/new/benchmark.json"):
        about = json.loads(file.read_text())
        action, _, message = about["group_id"].partition(" ")
        if action not in ("parse", "serialise", "odd"):
            continue
        median = json.loads(file.with_name("estimates.json").read_text())["median"]
        kind = "odd" if action == "odd" else "all"
        figures = found.setdefault(kind, {}).setdefault(message, {})
        figures[action, about["function_id"]] = median["point_estimate"]
    return found


def number(time):
    return f"{time:,.0f}" if time else ""


def ratio(of, to):
    return f"{of / to:.2f}" if of and to else ""


def table(heads, rows):
    print("| message |", " | ".join(heads), "|")
    print("|---" * (len(heads) + 1) + "|")
    for message, row in rows:
        print(f"| {message} |", " | ".join(row), "|")


def compared(figures):
    for action in ("parse", "serialise"):
        times = [figures.get((action, who)) for who in COLUMNS]
        yield from map(number, times)
        yield ratio(times[2], times[0])


def odd(figures):
    for who in WHO:
        times = [figures.get(("odd", f"{who}, {which}")) for which in ("sound", "odd")]
        yield from map(number, times)
        yield ratio(times[1], times[0])


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else "target/criterion")
    found = measured(root)
    if "all" not in found:
        sys.exit(f"nothing measured in {root}: run the bench first")
    heads = [f"{word}, {who}" for word in ("parse", "serialise") for who in [*COLUMNS, "ratio"]]
    table(heads, [(message, compared(it)) for message, it in sorted(found["all"].items())])
    print()
    heads = [f"{who}, {what}" for who in WHO for what in ("sound", "odd", "ratio")]
    table(heads, [(message, odd(it)) for message, it in sorted(found.get("odd", {}).items())])


if __name__ == "__main__":
    main()
