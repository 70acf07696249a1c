#!/usr/bin/env python3
"""Writes releases.toml: members of types that another release of the schema of version 1 has, by names only.

    releases.py SPEC [SDK...] > releases.toml

SPEC is a clone of github.com/agentclientprotocol/agent-client-protocol with its tags, an SDK an unpacked
npm package @agentclientprotocol/sdk, oldest first. Only direct members count: those of the branches of a
union belong to one branch, which has no name. Version 2 is a draft without releases.
"""

import json
import pathlib
import re
import subprocess
import sys

SCHEMAS = pathlib.Path(__file__).parent.parent / "schema"
# Schemas of proposals that no release has in this form.
PROPOSALS = [("the proposal of subagents", "vbr/subagents-rfd")]


def git(repo, *args):
    done = subprocess.run(["git", "-C", repo, *args], capture_output=True, text=True, check=True)
    return done.stdout


def members(schema):
    names = set(schema.get("properties", {}))
    for part in schema.get("allOf", []):
        names |= members(part)
    return names


def types(document):
    definitions = document.get("$defs") or document.get("definitions") or {}
    return {name: members(schema) for name, schema in definitions.items()}


def is_schema(path):
    return re.search(r"schema(\.unstable)?\.json$", path) and "v2" not in path


def of_revision(repo, revision):
    for path in git(repo, "ls-tree", "-r", "--name-only", revision, "schema").split():
        if is_schema(path):
            yield json.loads(git(repo, "show", f"{revision}:{path}"))


def of_package(folder):
    for path in sorted(folder.glob("schema/**/*.json")):
        name = str(path.relative_to(folder))
        if is_schema(name):
            yield json.loads(path.read_text())


def releases(repo, packages):
    tags = [tag for tag in git(repo, "tag").split() if re.fullmatch(r"v\d+\.\d+\.\d+", tag)]
    for tag in sorted(tags, key=lambda tag: [int(part) for part in tag[1:].split(".")]):
        yield tag[1:], of_revision(repo, tag)
    for folder in map(pathlib.Path, packages):
        number = json.loads((folder / "package.json").read_text())["version"]
        yield f"{number} of the SDK", of_package(folder)
    for name, branch in PROPOSALS:
        yield name, of_revision(repo, branch)


def ours():
    """The members of our documents; the overlay adds members to types by patches."""
    known = {}
    for name in ("v1.json", "v1.unstable.json"):
        document = json.loads((SCHEMAS / name).read_text())
        for of, names in types(document).items():
            known.setdefault(of, set()).update(names)
        for patch in document.get("x-patch", []):
            parts = patch["path"].split("/")
            if len(parts) == 5 and parts[1] == "$defs" and parts[3] == "properties":
                known.setdefault(parts[2], set()).add(parts[4])
    return known


def span(seen):
    proposals = [name for name, _ in PROPOSALS]
    released = [release for release in seen if release not in proposals] or seen
    return released[0] if len(released) == 1 else f"{released[0]} to {released[-1]}"


def main(repo, *packages):
    known = ours()
    found = {}
    for release, documents in releases(repo, packages):
        for document in documents:
            for of, names in types(document).items():
                for name in names - known.get(of, names) - {"_meta"}:
                    seen = found.setdefault((of, name), [])
                    if release not in seen:
                        seen.append(release)
    print("# Members of types that other releases of the schema of version 1 have, with the first and the last of")
    print("# them; made by `releases.py`. Names only.")
    last = None
    for (of, name), seen in sorted(found.items()):
        if of != last:
            print(f"\n[{of}]")
            last = of
        print(f'{name} = "{span(seen)}"')


if __name__ == "__main__":
    main(*sys.argv[1:])
