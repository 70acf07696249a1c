#!/usr/bin/env python3
"""Runs the conformance suite on real agents with a mock model on loopback, and prints the results as Markdown.

Usage: real_agents.py FOLDER ACP-CONFORMANCE [--quick] [--protocol 2] [AGENT...]

FOLDER has agents.py and fake_llm.py; client/interop/real_agents.py, which installs and configures the agents,
describes both. Needs npm and the network once ($CACHE). Exit code 1 if a run has no report.
"""
import datetime, importlib.util, json, os, pathlib, subprocess, sys, tempfile, time

HERE = pathlib.Path(__file__).resolve()

# What the mock model does for a prompt; the newest keyword counts.
PROMPTS = {
    "hello": "HELLO", "slow": "SLOW", "tool": "TOOL_SHELL", "permission": "TOOL_SHELL", "think": "THINK",
    "read": "TOOL_READ", "write": "TOOL_WRITE", "fail": "FAIL",
}


def module(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def cell(text):
    return text.replace("|", "\\|").replace("\n", " ")


def shown(name, report, seconds):
    rows = report["requirements"]
    count = lambda verdict: sum(row["verdict"] == verdict for row in rows)
    passed, failed, open_rows = count("pass"), count("fail"), count("inconclusive")
    judged = passed + failed + open_rows
    share = 100 * open_rows / judged if judged else 0
    print(f"\n## {report['name']}\n")
    print(f"`acp-conformance agent --protocol {report['protocol']}`: **{report['verdict']}** in {seconds:.0f} s with "
          f"{report['prompts']} prompts: {passed} passed, {failed} failed, {open_rows} inconclusive "
          f"({share:.0f} % of {judged}), {count('skip')} skipped, {count('blocked')} blocked.\n")
    if report.get("root_cause"):
        print(f"Root cause: {json.dumps(report['root_cause'])}\n")
    print("| requirement | tier | finding | sentence |\n|---|---|---|---|")
    for row in rows:
        if row["verdict"] == "fail":
            print(f"| {row['id']} | {row['tier']} | {cell(row['reason'])} | {cell(row['quote'])} |")
    print("\nInconclusive:\n")
    for row in rows:
        if row["verdict"] == "inconclusive":
            print(f"- {row['id']}: {cell(row['reason'])}")


def main():
    words = sys.argv[1:]
    quick = "--quick" in words
    words = [word for word in words if word != "--quick"]
    protocol = []
    if "--protocol" in words:
        at = words.index("--protocol")
        protocol = words[at:at + 2]
        del words[at:at + 2]
    if len(words) < 2:
        sys.exit(__doc__)
    folder, suite = (pathlib.Path(word).resolve() for word in words[:2])
    places = module("places", HERE.parents[2] / "client/interop/real_agents.py")
    agents = places.agents(folder, protocol[1] if protocol else "1")
    code = 0
    print(f"{datetime.date.today()}, {os.cpu_count()} processors, mock model")
    with tempfile.TemporaryDirectory() as scratch:
        for name in words[2:] or agents:
            place = places.Place(folder, name, agents[name], pathlib.Path(scratch))
            profile = pathlib.Path(scratch) / f"{name}.toml"
            texts = "".join(f"{word} = {json.dumps(text)}\n" for word, text in PROMPTS.items())
            profile.write_text("[prompts]\n" + texts)
            command = [suite, "agent", "--json", "-", "--profile", profile, *protocol]
            command += ["--quick"] if quick else []
            print(f"running the suite on {name}", file=sys.stderr)
            started = time.monotonic()
            try:
                ran = subprocess.run([*command, "--", *place.command], cwd=place.workspace, env=place.env,
                                     stdout=subprocess.PIPE, timeout=1500)
                shown(name, json.loads(ran.stdout), time.monotonic() - started)
            except (subprocess.TimeoutExpired, json.JSONDecodeError) as error:
                print(f"{name}: no report: {error}", file=sys.stderr)
                code = 1
            finally:
                place.model.kill()
    sys.exit(code)


main()
