#!/usr/bin/env python3
"""The scaling table: 1, 2 and 3 replicas over one Redis, with 1,000, 5,000 and 20,000 sessions that hold a GET stream each.

    cargo build --release --bin mcpgate                        (at the top)
    cargo build --release --bin load --bin upstream            (in this folder, or with CARGO_TARGET_DIR set)
    scaling.py  [--replicas 1,2,3] [--sessions 1000,5000,20000] [--seconds 4] [--json]

Sessions begin at each replica in turn, and all else of them goes to any replica, as behind a load balancer that knows
nothing: with three, two of three streams and calls are forwarded. Everything runs on this machine, the load and the
server included, so that calls per second say little but that all was busy; memory and CPU per call are of the
gateways alone. Where descriptors do not suffice for so many connections in one process, fewer sessions are opened, and
the row says how many."""
import argparse, json, os, subprocess, sys, time
from fleet import TOOL, Fleet, cpu_us, load, load_command, rss_kb

# What a process needs beside its callers' connections: servers, peers, Redis, files.
SPARE = 600


def holders(fleet, urls, sessions, seconds):
    """The loads that hold the sessions: as many as descriptors ask for."""
    loads = -(-sessions // (fleet.most - SPARE))
    also = [word for url in urls[1:] for word in ("--also", url)]
    share = [sessions // loads + (1 if n < sessions % loads else 0) for n in range(loads)]
    # The timeout is of one GET, and all are opened at once in a sense.
    command = lambda n: load_command("idle", urls[0], n, seconds, "--opening", "32", "--timeout", "30", *also)
    return [subprocess.Popen(command(n), stdout=subprocess.PIPE, text=True) for n in share]


def streams(gateways):
    """How many streams callers hold, as the gateways where they came count them, and sessions."""
    def total(name):
        found = 0
        for gateway in gateways:
            for line in gateway.get("/metrics")[1].splitlines():
                if line.startswith(name) and line[len(name)] in " {":
                    found += float(line.rsplit(" ", 1)[1])
        return int(found)
    return total("mcpgate_sessions_active"), total("mcpgate_sse_streams_active")


def rate(redis, pids, redis_pid, seconds, during=None):
    """Redis commands per second and CPU of the gateways and of Redis while something runs, or nothing."""
    commands, cpu, began = redis.commands(), [cpu_us(pid) for pid in [*pids, redis_pid]], time.monotonic()
    result = during() if during else time.sleep(seconds)
    took = time.monotonic() - began
    used = [(cpu_us(pid) - before) / took / 1e4 for pid, before in zip([*pids, redis_pid], cpu)]
    return (sum(redis.commands().values()) - sum(commands.values())) / took, sum(used[:-1]), used[-1], result


def row(o, replicas, sessions):
    with Fleet() as fleet:
        redis = fleet.with_redis()
        gateways = [fleet.gateway(name, "redis") for name in "abcdef"[:replicas]]
        urls, pids = [gateway.url for gateway in gateways], [gateway.pid for gateway in gateways]
        also = [word for url in urls[1:] for word in ("--also", url)]
        call = lambda seconds: load("call", urls[0], 32, seconds, "-t", TOOL + "echo", *also, pids=pids)
        # What the first calls leave behind is not what sessions hold.
        call(0.5)
        sessions = min(sessions, replicas * (fleet.most - SPARE))
        fresh, redis_fresh = [rss_kb(pid) for pid in pids], redis.memory()
        began = time.monotonic()
        held = holders(fleet, urls, sessions, 600)
        have = (0, 0)
        while have[0] < sessions and time.monotonic() - began < 60 and all(h.poll() is None for h in held):
            time.sleep(0.3)
            have = streams(gateways)
        opening = time.monotonic() - began
        time.sleep(1.5)
        have = streams(gateways)
        idle_commands, idle_cpu, idle_redis_cpu, _ = rate(redis, pids, fleet.redis_pid, o.seconds, None)
        rss, redis_held = [rss_kb(pid) for pid in pids], redis.memory()
        busy_commands, _, busy_redis_cpu, calls = rate(redis, pids, fleet.redis_pid, o.seconds, lambda: call(o.seconds))
        still = streams(gateways)
        grown = [after - before for before, after in zip(fresh, rss)]
        for h in held:
            h.kill()
            h.wait()
        ready = [gateway.get("/readyz")[0] for gateway in gateways]
        result = {
            "replicas": replicas, "sessions": have[0], "streams": have[1], "opened_per_s": round(have[0] / opening),
            "rss_mib_each": [round(kb / 1024) for kb in rss], "kib_per_session": round(sum(grown) / max(1, have[0]), 1),
            "cpu_us_per_call": calls["cpu_us_per_req"], "calls_per_s": calls["rps"], "p99_ms": round(calls["p99_us"] / 1000, 1),
            "redis_mib": round((redis_held - redis_fresh) / 1048576, 1), "redis_idle_per_s": round(idle_commands, 1),
            "redis_per_1000_calls": round(busy_commands * o.seconds * 1000 / max(1, calls["sent"])), "idle_cpu_percent": round(idle_cpu, 1),
            "redis_cpu_percent": [round(idle_redis_cpu, 1), round(busy_redis_cpu, 1)],
            "errors": calls["errors"], "lost": have[0] - still[0], "ready": ready, "load": round(os.getloadavg()[0], 1),
        }
        if calls["errors"] or any(status != 200 for status in ready):
            print(calls.get("error"), *(fleet.log_tail(gateway.name)[-600:] for gateway in gateways), file=sys.stderr, sep="\n")
        return result


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--replicas", default="1,2,3")
    options.add_argument("--sessions", default="1000,5000,20000")
    options.add_argument("--seconds", type=float, default=4)
    options.add_argument("--json", action="store_true")
    o = options.parse_args()
    names = None
    for replicas in map(int, o.replicas.split(",")):
        for sessions in map(int, o.sessions.split(",")):
            result = row(o, replicas, sessions)
            if o.json:
                print(json.dumps(result), flush=True)
                continue
            if names is None:
                names = list(result)
                print("| " + " | ".join(names) + " |\n" + "|---" * len(names) + "|")
            print("| " + " | ".join(str(result[name]) for name in names) + " |", flush=True)


main()
