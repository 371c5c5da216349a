#!/usr/bin/env python3
"""What a session costs whose server is a child of its own: the memory of the children.

    cargo build --release --bin mcpgate                        (at the top)
    cargo build --release --bin load --bin upstream            (in this folder, or with CARGO_TARGET_DIR set)
    children.py --tool echo --args '{"message":"x"}' --sessions 10 -- node path/to/server-everything/dist/index.js stdio

RSS counts what children share once for each; PSS shares it out, and is what more of them cost."""
import argparse, os, subprocess, sys, time
from fleet import Fleet, load_command, rss_kb


def children(pid):
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children") as f:
            found += map(int, f.read().split())
    return [pid, *(grandchild for child in found for grandchild in children(child))]


def pss_kb(pid):
    with open(f"/proc/{pid}/smaps_rollup") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("Pss:"))


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--tool", required=True)
    options.add_argument("--args", required=True)
    options.add_argument("--sessions", type=int, default=10)
    options.add_argument("command", nargs="+")
    o = options.parse_args()
    with Fleet() as fleet:
        gateway = fleet.gateway("memory", "memory", {"child": {"command": o.command[0], "args": o.command[1:]}})
        before = set(children(gateway.pid))
        alone = rss_kb(gateway.pid)
        command = load_command("call", gateway.url, o.sessions, 6, "-t", "mcp_child_" + o.tool, "-a", o.args, "--timeout", "30")
        calls = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        most = []
        while calls.poll() is None:
            now = [pid for pid in children(gateway.pid) if pid not in before]
            most = now if len(now) > len(most) else most
            time.sleep(0.5)
            try:
                sizes = [(rss_kb(pid), pss_kb(pid)) for pid in now] if len(now) == len(most) and now else sizes
            except (OSError, NameError):
                continue
        print(calls.stdout.read().strip())
        rss, pss = (sum(size[n] for size in sizes) / len(sizes) / 1024 for n in (0, 1))
        print(f"{len(sizes)} children of {o.sessions} sessions: {rss:.0f} MiB RSS and {pss:.0f} MiB PSS each; the gateway had {alone / 1024:.0f} MiB before")


main()
