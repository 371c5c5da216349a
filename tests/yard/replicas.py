#!/usr/bin/env python3
"""Measures what several replicas cost against one with the memory store, in one run, and prints the ratios.

    cargo build --release --bin mcpgate                        (at the top)
    cargo build --release --bin load --bin upstream            (in this folder, or with CARGO_TARGET_DIR set)
    replicas.py  [--rounds 3] [--seconds 3] [--sessions 10000] [--at-once 16,4] [--only calls,events,commands,memory,latency] [--check]

It starts a redis-server, `upstream`, a gateway with the memory store and three with Redis, all on free ports, and ends
them. The three ways are `memory` (the floor), `owner` (Redis, at the replica that owns the session) and `forwarded` (a
session begun at one replica and called at another; both processes counted). CPU is from /proc, the least of the rounds,
which take turns; only ratios within one run hold. `--check` exits 1 if a bar below is missed or a load had errors."""
import argparse, json, os, subprocess, sys, time
from fleet import TOOL, Fleet, load, load_command

# What is promised, measured in docs/capacity.md.
BARS = {"owner/memory": 1.1, "forwarded/memory": 2.0, "commands per 10 calls": 1.0, "Redis bytes per idle session": 2048}
failed = []


def measured(name, result):
    if result.get("errors"):
        failed.append(name)
        print(f"  {name}: {result['errors']} errors: {result.get('error')}", file=sys.stderr)
    return result


def ways(memory, replicas):
    a, b = replicas[0], replicas[1]
    return {
        "memory": (memory.url, [], [memory.pid]),
        "owner": (a.url, [], [a.pid]),
        # The first process is where the caller is, the second the owner.
        "forwarded": (b.url, ["--session-at", a.url], [b.pid, a.pid]),
    }


def cpu(o, all_ways, mode, connections, options, figure):
    """The least of the rounds for each way, and what each process used in that round."""
    best = {}
    for _ in range(o.rounds):
        for name, (url, more, pids) in all_ways.items():
            result = measured(f"{mode} {name}", load(mode, url, connections, o.seconds, *options, *more, pids=pids))
            if name not in best or result[figure] < best[name][figure]:
                best[name] = result
    for name, result in best.items():
        each = f" (where it came {result['cpu_us_each'][0]}, owner {result['cpu_us_each'][1]})" if "cpu_us_each" in result else ""
        rate = f"{result['events_per_s']} events/s" if mode == "stream" else f"{result['rps']} calls/s"
        print(f"{mode:7} {connections:3} at once  {name:10} {result[figure]:8} us{each}  [{rate}, p50 {result['p50_us']} us, p99 {result['p99_us']} us]", flush=True)
    return {name: result[figure] / best["memory"][figure] for name, result in best.items()}


def commands(o, redis, all_ways):
    """Redis commands per call, all that three replicas say of themselves included."""
    worst = 0
    for name in ("owner", "forwarded"):
        url, more, pids = all_ways[name]
        before, began = redis.commands(), time.monotonic()
        sent = measured(f"commands {name}", load("call", url, 16, o.seconds, "-t", TOOL + "echo", *more, pids=pids))["sent"]
        after, took = redis.commands(), time.monotonic() - began
        new = {command: n - before.get(command, 0) for command, n in after.items() if n > before.get(command, 0)}
        per = sum(new.values()) * 1000 / sent
        worst = max(worst, per / 100)
        shown = ", ".join(f"{command} {n}" for command, n in sorted(new.items(), key=lambda item: -item[1])[:8])
        print(f"Redis   {name:10} {per:8.1f} commands per 1,000 calls ({sent} calls of 16 sessions in {took:.1f} s: {shown})", flush=True)
    return worst


def idle_session(o, redis, replica):
    before, keys = redis.memory(), redis("DBSIZE")
    held = subprocess.Popen(load_command("idle", replica.url, o.sessions, 6, "--opening", "64", pids=[replica.pid]), stdout=subprocess.PIPE, text=True)
    most, had = 0, 0
    while held.poll() is None:
        now = redis("DBSIZE")
        if now > had:
            had, most = now, max(most, redis.memory())
        time.sleep(0.2)
    result = measured("idle", json.loads(held.stdout.read()))
    sessions = result["opened"]
    per = (most - before) / sessions
    print(f"Redis   {sessions} idle sessions, each with a GET stream: {per:.0f} bytes and {(had - keys) / sessions:.2f} keys each; {result['kb_per_session']} KiB in the replica", flush=True)
    return per


def logged_event(redis, replica):
    """What an event takes in Redis while its stream can be resumed."""
    options = ["-t", TOOL + "stream", "--events", "400", "--interval-ms", "5"]
    run = subprocess.Popen(load_command("stream", replica.url, 20, 3, *options), stdout=subprocess.DEVNULL)
    time.sleep(3)
    entries = taken = 0
    cursor = b"0"
    while True:
        cursor, keys = redis("SCAN", cursor, "MATCH", "*:l", "COUNT", "1000")
        for key in keys:
            entries += redis("XLEN", key)
            taken += redis("MEMORY", "USAGE", key, "SAMPLES", "0") or 0
        if cursor == b"0":
            break
    run.wait()
    if entries:
        print(f"Redis   {entries} events in the logs of sessions: {taken / entries:.0f} bytes each")


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--seconds", type=float, default=3)
    options.add_argument("--sessions", type=int, default=10_000)
    options.add_argument("--at-once", default="16,4")
    options.add_argument("--only", default="calls,events,commands,memory,latency")
    options.add_argument("--check", action="store_true")
    o = options.parse_args()
    only = o.only.split(",")
    found = {}
    with Fleet() as fleet:
        redis = fleet.with_redis()
        memory = fleet.gateway("memory", "memory")
        replicas = [fleet.gateway(name, "redis") for name in "abc"]
        all_ways = ways(memory, replicas)
        print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
        if "memory" in only:
            found["Redis bytes per idle session"] = idle_session(o, redis, replicas[2])
            logged_event(redis, replicas[2])
        if "calls" in only:
            echo = ["-t", TOOL + "echo"]
            for at_once in map(int, o.at_once.split(",")):
                # The bars are for as many as compare.py has.
                of = "" if at_once == 16 else f", {at_once} at once"
                ratios = cpu(o, all_ways, "call", at_once, echo, "cpu_us_per_req")
                found |= {f"{name}/memory{of}": ratio for name, ratio in ratios.items() if name != "memory"}
        if "events" in only:
            ratios = cpu(o, all_ways, "stream", 4, ["-t", TOOL + "stream"], "cpu_us_per_event")
            found |= {f"{name}/memory per event": ratio for name, ratio in ratios.items() if name != "memory"}
        if "commands" in only:
            found["commands per 10 calls"] = commands(o, redis, all_ways)
        if "latency" in only:
            one = {name: measured(f"latency {name}", load("call", url, 1, o.seconds, "-t", TOOL + "echo", *more)) for name, (url, more, _) in all_ways.items()}
            p50 = {name: result["p50_us"] for name, result in one.items()}
            print(f"latency one at a time, p50: {p50}; the forward adds {p50['forwarded'] - p50['owner']:.0f} us")
    missed = []
    for name, value in found.items():
        bar = BARS.get(name)
        verdict = "" if bar is None else f"  bar {bar}: {'met' if value <= bar else 'MISSED'}"
        print(f"  {name:40} {value:8.2f}{verdict}")
        missed += [name] if bar is not None and value > bar else []
    if o.check and (missed or failed):
        sys.exit(1)


main()
