#!/usr/bin/env python3
"""Makes pages of the suite's reports: who passes what, for agents and clients and each version of the protocol.

Usage: matrix.py ACP-CONFORMANCE REPORTS OUT
REPORTS has what `acp-conformance agent|client --json FILE` wrote. In OUT come a comparison for each party and
version, as a page for browsers, and an index; the index is printed as Markdown.
"""
import html, json, pathlib, subprocess, sys

TIERS = ["must", "capability", "derived", "should", "info"]


def row(path, report):
    rows = report["requirements"]
    failed = [sum(row["verdict"] == "fail" and row["tier"] == tier for row in rows) for tier in TIERS]
    counts = [sum(row["verdict"] == verdict for row in rows) for verdict in ("inconclusive", "skip")]
    passed = sum(row["verdict"] == "pass" for row in rows)
    return [path.stem, report["name"], report["verdict"], passed, *failed, *counts, f'{report["seconds"]:.0f} s']


HEAD = ["run", "name", "verdict", "passed", *TIERS, "inconclusive", "skipped", "time"]


def main(suite, reports, out):
    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    groups = {}
    for path in sorted(pathlib.Path(reports).glob("*.json")):
        report = json.loads(path.read_text())
        groups.setdefault((report["kind"], report["protocol"]), []).append((path, report))
    page = ["<!doctype html><meta charset=utf-8><title>Conformance</title><h1>Conformance</h1>"]
    for (party, protocol), runs in sorted(groups.items()):
        title = f"{party.title()}s, version {protocol}"
        table = [row(path, report) for path, report in runs]
        print(f"\n### {title}\n\n| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}")
        for cells in table:
            print("| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |")
        file = f"{party}s-{protocol}.html"
        heading = html.escape(title)
        if len(runs) > 1:
            compared = [suite, "compare", *[path for path, _ in runs], "--html", out / file]
            subprocess.run(compared, check=True, stdout=subprocess.DEVNULL)
            heading = f'<a href="{file}">{heading}</a>'
        lines = "".join("<tr>" + "".join(f"<td>{html.escape(str(cell))}" for cell in cells) for cells in table)
        page.append(f"<h2>{heading}</h2><table><tr><th>{'<th>'.join(HEAD)}{lines}</table>")
    (out / "index.html").write_text("\n".join(page))
    print(f"\n{out}/index.html", file=sys.stderr)


if len(sys.argv) != 4:
    sys.exit(__doc__)
main(*sys.argv[1:])
