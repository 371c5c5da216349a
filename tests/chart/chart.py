"""What all checks of the chart share: where things are, and what Helm makes of them."""

import functools
import subprocess
import tempfile
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "helm/mcpgate"
FILES = CHART / "files"
VALUES = sorted((CHART / "ci").glob("*-values.yaml"))
RELEASE = "t"
# What every rendering is told of the cluster.
CLUSTER = ["--kube-version", "1.35.0", "--api-versions", "monitoring.coreos.com/v1"]


class Refused(Exception):
    """Helm would not render it."""


def run(*command, **options):
    """Runs a command; gives its status and all that it said."""
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=120, **options)
    return done.returncode, done.stdout + done.stderr


def template(*files, values=None, cluster=None):
    """The text that Helm renders from these value files and this mapping, the last one wins."""
    command = ["helm", "template", RELEASE, str(CHART), *(CLUSTER if cluster is None else cluster)]
    for file in files:
        command += ["--values", str(file)]
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as extra:
        yaml.safe_dump(values or {}, extra)
        extra.flush()
        done = subprocess.run([*command, "--values", extra.name], capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise Refused(done.stderr)
    return done.stdout


def objects(text):
    """The objects of a rendering, by kind and name."""
    found = [document for document in yaml.safe_load_all(text) if document]
    return {(each["kind"], each["metadata"]["name"]): each for each in found}


@functools.cache
def rendered(file):
    """The objects of one value file under ci."""
    return objects(template(file))


def with_values(values, file="minimal-values.yaml"):
    """The objects of a value file, with these values over it."""
    return objects(template(CHART / "ci" / file, values=values))


def config(found, name=f"{RELEASE}-mcpgate"):
    """The config of the gateway, or of a stdio server, in a rendering."""
    return yaml.safe_load(found["ConfigMap", name]["data"]["mcpgate.yaml"])


def pods(found):
    """The pod templates and pods of a rendering, by name: (labels, spec)."""
    for (kind, name), each in found.items():
        if kind == "Deployment":
            inner = each["spec"]["template"]
            yield name, inner["metadata"]["labels"], inner["spec"]
        elif kind == "Pod":
            yield name, each["metadata"]["labels"], each["spec"]
