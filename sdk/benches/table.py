#!/usr/bin/env python3
"""Prints what `cargo bench -p acp-sdk --bench messages` measured as the table of docs/performance.md.

    cargo bench -p acp-sdk --bench messages && python3 sdk/benches/table.py [target/criterion]

Medians in ns; the ratios are official to ours, above 1 where ours is faster. A figure that was
not measured is left out.
"""

import json
import sys
from pathlib import Path

COLUMNS = ["ours", "ours, by serde_json", "official"]


def measured(root):
    """The median of each message, by what was done with it and by whom."""
    found = {}
    for file in root.glob("*/*/new/benchmark.json"):
        about = json.loads(file.read_text())
        action, _, message = about["group_id"].partition(" ")
        if action in ("parse", "serialise"):
            median = json.loads(file.with_name("estimates.json").read_text())["median"]
            found.setdefault(message, {})[action, about["function_id"]] = median["point_estimate"]
    return found


def cells(figures, action):
    times = [figures.get((action, who)) for who in COLUMNS]
    yield from (f"{time:,.0f}" if time else "" for time in times)
    ours, _, official = times
    yield f"{official / ours:.2f}" if ours and official else ""


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else "target/criterion")
    found = measured(root)
    if not found:
        sys.exit(f"nothing measured in {root}: run the bench first")
    heads = [f"{word}, {who}" for word in ("parse", "serialise") for who in [*COLUMNS, "ratio"]]
    print("| message |", " | ".join(heads), "|")
    print("|---" * (len(heads) + 1) + "|")
    for message, figures in sorted(found.items()):
        row = [*cells(figures, "parse"), *cells(figures, "serialise")]
        print(f"| {message} |", " | ".join(row), "|")


if __name__ == "__main__":
    main()
