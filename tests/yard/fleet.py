"""What replicas.py and scaling.py share: a Redis, the fast upstream and gateways of their own, on free loopback ports.

Everything is started here and ended here, by its process id; nothing else is touched."""
import json, os, resource, shutil, signal, socket, subprocess, tempfile, time, urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
YARD = os.path.abspath(os.path.join(os.environ.get("CARGO_TARGET_DIR", HERE + "/target"), "release"))
MCPGATE = os.path.abspath(os.environ.get("MCPGATE", os.path.join(HERE, "../../target/release/mcpgate")))
KEY = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="
TOOL = "mcp_yard_"


def raise_descriptors():
    """As many as the machine lets us; gives how many that is."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def cpu_us(pid):
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * 10_000


def rss_kb(pid):
    with open(f"/proc/{pid}/statm") as f:
        return int(f.read().split()[1]) * 4


class Redis:
    """A client of as much as is needed here."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.file = self.socket.makefile("rb")

    def __call__(self, *words):
        self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in map(lambda w: w.encode() if isinstance(w, str) else w, words)))
        return self.reply()

    def reply(self):
        line = self.file.readline()[:-2]
        kind, rest = line[:1], line[1:]
        if kind == b"$":
            return None if rest == b"-1" else self.file.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return [self.reply() for _ in range(int(rest))]
        if kind == b"-":
            raise RuntimeError(rest.decode())
        return int(rest) if kind == b":" else rest

    def info(self, section):
        return dict(line.split(":", 1) for line in self("INFO", section).decode().splitlines() if ":" in line)

    def memory(self):
        return int(self.info("memory")["used_memory"])

    def commands(self):
        """How many callers' commands there were, by name; those within scripts count, those of this client do not."""
        calls = {name[8:]: int(dict(part.split("=") for part in text.split(","))["calls"]) for name, text in self.info("commandstats").items()}
        return {name: n for name, n in calls.items() if name.split("|")[0] not in ("info", "memory", "scan", "xlen")}


class Gateway:
    def __init__(self, process, name, url, admin):
        self.process, self.pid, self.name, self.url, self.admin = process, process.pid, name, url, admin

    def get(self, path):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}{path}", timeout=2) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError as error:
            return 0, str(error)


class Fleet:
    """Use it with `with`: what it started ends with it."""

    def __init__(self):
        self.most = raise_descriptors()
        self.folder = tempfile.mkdtemp(prefix="yard-")
        self.started, self.redis = [], None
        self.upstream_port, self.redis_port = free_port(), None

    def __enter__(self):
        self.start("upstream", [f"{YARD}/upstream", "--listen", f"127.0.0.1:{self.upstream_port}", "--tools", "20"])
        return self

    def __exit__(self, *_):
        for process in reversed(self.started):
            self.end(process)
        shutil.rmtree(self.folder, ignore_errors=True)

    def end(self, process):
        """A gateway's second signal ends it at once; nothing here needs a drain."""
        while process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(0.3)
            except subprocess.TimeoutExpired:
                pass

    def start(self, name, command):
        with open(f"{self.folder}/{name}.log", "wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder)
        self.started.append(process)
        return process

    def with_redis(self):
        self.redis_port = free_port()
        options = ["--port", str(self.redis_port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction"]
        process = self.start("redis", ["redis-server", *options])
        self.redis_pid = process.pid
        for _ in range(100):
            try:
                self.redis = Redis(self.redis_port)
                return self.redis
            except OSError:
                time.sleep(0.05)
        raise SystemExit("redis-server does not start")

    def gateway(self, name, store, servers=None):
        """A gateway with this store, "memory" or "redis", and these servers instead of the fast one."""
        folder = f"{self.folder}/{name}"
        os.mkdir(folder)
        listen, admin, peer = free_port(), free_port(), free_port()
        config = {
            "listen": f"127.0.0.1:{listen}", "admin": {"listen": f"127.0.0.1:{admin}"}, "stateDir": f"{folder}/state",
            "sessions": {"max": 100_000}, "limits": {"connections": 60_000},
            "mcpServers": servers or {"yard": {"url": f"http://127.0.0.1:{self.upstream_port}/mcp"}},
        }
        if store == "redis":
            with open(f"{folder}/cluster-keys", "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as keys:
                keys.write(KEY + "\n")
            config["store"] = {"redis": {"url": f"redis://127.0.0.1:{self.redis_port}"}}
            config["cluster"] = {"listen": f"127.0.0.1:{peer}", "advertise": f"127.0.0.1:{peer}", "keys": {"file": "cluster-keys"}}
        with open(f"{folder}/mcpgate.yaml", "w") as file:
            json.dump(config, file)
        process = self.start(f"{name}-gateway", [MCPGATE, "serve", "--config", f"{folder}/mcpgate.yaml"])
        gateway = Gateway(process, name, f"http://127.0.0.1:{listen}/mcp", admin)
        for _ in range(200):
            status, said = gateway.get("/readyz?verbose")
            if status == 200 and (store == "memory" or "[+]lease" in said):
                return gateway
            if process.poll() is not None:
                break
            time.sleep(0.1)
        with open(f"{self.folder}/{name}-gateway.log") as log:
            raise SystemExit(f"{name} is not ready: {status} {said}\n{log.read()[-2000:]}")

    def log_tail(self, name):
        with open(f"{self.folder}/{name}-gateway.log", errors="replace") as log:
            return log.read()[-3000:]


def load_command(mode, at, connections, seconds, *options, pids=()):
    command = [f"{YARD}/load", mode, at, "-c", str(connections), "-s", str(seconds), "--json", *options]
    return command + [word for pid in pids for word in ("-p", str(pid))]


def load(mode, at, connections, seconds, *options, pids=()):
    command = load_command(mode, at, connections, seconds, *options, pids=pids)
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    try:
        return json.loads(done.stdout)
    except ValueError:
        raise SystemExit(f"load failed: {command}\n{done.stderr[-600:]}")
