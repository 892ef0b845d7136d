"""The files of this folder fit the program: COMER=target/release/comer pytest deploy (needs PyYAML)."""

import os
import re
import shlex
import subprocess
import urllib.request
from pathlib import Path

import pytest
import yaml

FOLDER = Path(__file__).parent
COMER = os.environ.get("COMER", str(FOLDER.parent / "target/release/comer"))
DOCUMENTS = {item["kind"]: item for item in yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text())}
CONTAINER = DOCUMENTS["Deployment"]["spec"]["template"]["spec"]["containers"][0]


def arguments():
    unit = re.search("^ExecStart=(.*)$", (FOLDER / "comer.service").read_text(), re.M).group(1)
    command = re.search("^CMD (.*)$", (FOLDER / "Containerfile").read_text(), re.M).group(1)
    return {"kubernetes": CONTAINER["args"], "systemd": shlex.split(unit)[1:], "container": yaml.safe_load(command)}


@pytest.mark.parametrize("name", arguments())
def test_the_server_starts_with_these_arguments_and_answers_the_probes(name):
    # Any free port instead of the one that may be in use here.
    own = [re.sub(r":8765$", ":0", argument) for argument in arguments()[name]]
    with subprocess.Popen([COMER, *own], stderr=subprocess.PIPE, text=True) as server:
        try:
            line = next(line for line in server.stderr if "listening on" in line)
            port = re.search(r":(\d+) ", line).group(1)
            for probe in ["startupProbe", "readinessProbe", "livenessProbe"]:
                path = CONTAINER[probe]["httpGet"]["path"]
                with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}") as answer:
                    assert answer.status == 200
        finally:
            server.terminate()
            server.communicate()
    assert server.returncode == 0


def test_the_manifest_is_consistent():
    labels = DOCUMENTS["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert DOCUMENTS["Deployment"]["spec"]["selector"]["matchLabels"] == labels
    assert DOCUMENTS["Service"]["spec"]["selector"] == labels
    assert DOCUMENTS["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    assert DOCUMENTS["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]["name"] == "comer"
    assert CONTAINER["resources"]["requests"]["cpu"] == CONTAINER["args"][-1]
    port = CONTAINER["args"][CONTAINER["args"].index("--listen") + 1].rsplit(":")[-1]
    assert CONTAINER["ports"][0]["containerPort"] == int(port)
    version = re.search('^version = "(.*)"', (FOLDER.parent / "Cargo.toml").read_text(), re.M).group(1)
    assert CONTAINER["image"].endswith(f":{version}")


def test_the_container_is_built_as_check_builds():
    build = re.search("^RUN cargo build (.*)$", (FOLDER / "Containerfile").read_text(), re.M).group(1)
    assert f"cargo check {build}" in (FOLDER.parent / "check").read_text()
    toolchain = re.search('channel = "(.*)"', (FOLDER.parent / "rust-toolchain.toml").read_text()).group(1)
    assert f"rust:{toolchain}-" in (FOLDER / "Containerfile").read_text()
