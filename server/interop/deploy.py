"""Checks docs/deploy/compose.yml and kubernetes.yml: they are YAML, and each command of a node is one that `acp-server serve`
takes. It is run with a database that nobody listens at: exit code 1 says that the store failed, 2 that the usage is wrong.

Usage: server/interop/deploy.py FOLDER-OF-BINARIES (needs PyYAML)
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

from nodes import check, free_port

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "deploy"


def commands():
    """Returns the commands of all nodes by name, and checks what stands around them."""
    compose = yaml.safe_load((FOLDER / "compose.yml").read_text())
    services = compose["services"]
    nodes = {name: service for name, service in services.items() if name.startswith("node-")}
    check(len(nodes) == 3, "compose.yml has three nodes")
    found = {}
    for name, service in nodes.items():
        check(f"--node-address=http://{name}:7410" in service["command"], f"{name} is reached by its name")
        check(f"server {name}:5173" in compose["configs"]["balancer"]["content"], f"{name} is balanced")
        check(set(service["secrets"]) <= set(compose["secrets"]), f"the secrets of {name} exist")
        found[name] = service["command"]
    documents = {one["kind"]: one for one in yaml.safe_load_all((FOLDER / "kubernetes.yml").read_text())}
    pod = documents["Deployment"]["spec"]["template"]["spec"]
    container = pod["containers"][0]
    ports = {port["name"] for port in container["ports"]}
    target = documents["Service"]["spec"]["ports"][0]["targetPort"]
    probes = [container[probe]["httpGet"] for probe in ("readinessProbe", "livenessProbe")]
    check({target, *(probe["port"] for probe in probes)} <= ports, "the ports of kubernetes.yml exist")
    check([probe["path"] for probe in probes] == ["/readyz", "/healthz"], "the probes ask the right questions")
    found["kubernetes"] = container["command"] + container["args"]
    grace = pod["terminationGracePeriodSeconds"]
    pause = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    check(grace > pause + ending(found["kubernetes"]), "kubernetes.yml waits for a node that ends")
    grace = int(services["node-1"]["stop_grace_period"].rstrip("s"))
    check(all(grace > ending(found[name]) for name in nodes), "compose.yml waits for a node that ends")
    return found


def ending(command):
    """Returns the seconds that a node may take to end."""
    options = dict(word.split("=", 1) for word in command if "=" in word)
    return int(options["--drain"]) + int(options["--shutdown-timeout"])


def main():
    program = Path(sys.argv[1]).resolve() / "acp-server"
    environment = {**os.environ, "ACP_STORE": f"postgres://acp@127.0.0.1:{free_port()}/acp"}
    with tempfile.TemporaryDirectory() as folder:
        environment |= {"XDG_RUNTIME_DIR": folder, "XDG_STATE_HOME": folder}
        for name in ("token", "node-secret"):
            path = Path(folder) / name
            path.write_text("0123456789abcdef0123456789abcdef")
            path.chmod(0o600)
        for name, command in commands().items():
            words = [word.replace("/run/secrets/", f"{folder}/").replace("/run/acp/", f"{folder}/") for word in command]
            words = [word.replace("$(POD_IP)", "127.0.0.1") for word in words]
            words = ["--node-listen=127.0.0.1:0" if word.startswith("--node-listen") else word for word in words]
            done = subprocess.run(
                [program, *words[1:], f"--port={free_port()}"], env=environment, capture_output=True, text=True, timeout=60
            )
            check(done.returncode == 1 and "store" in done.stderr, f"the command of {name} is one", done.stderr)


main()
