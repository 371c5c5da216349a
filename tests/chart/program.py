"""The program itself, serving on loopback, and a caller of it."""

import json
import os
import re
import subprocess
import tempfile
import urllib.request

MCPGATE = os.environ["MCPGATE"]


class Gateway:
    """Serves a config at free ports until it is left."""

    def __init__(self, config):
        self.folder = tempfile.TemporaryDirectory()
        command = [MCPGATE, "serve", "--config", str(config), "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]
        # Children are looked for by name, and the program is one of them.
        path = f"{os.path.dirname(MCPGATE)}:{os.environ['PATH']}"
        variables = {**os.environ, "PATH": path, "HOME": self.folder.name, "XDG_STATE_HOME": self.folder.name}
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=variables)
        said = ""
        for line in self.process.stderr:
            said += line
            if "serving at" in line:
                self.callers = re.search(r"serving at (http://[\d.:]+)/mcp", line)[1]
                self.admin = re.search(r'admin="?(http://[\d.:]+)', line)[1]
                return
        raise AssertionError(f"it does not serve:\n{said}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.communicate(timeout=60)
        finally:
            self.process.kill()
            self.folder.cleanup()

    def ask(self, message, headers, path="/mcp"):
        """Posts a message; gives the answer's session id and JSON text."""
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **headers}
        request = urllib.request.Request(f"{self.callers}{path}", json.dumps({"jsonrpc": "2.0", **message}).encode(), headers)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.headers.get("Mcp-Session-Id"), answer.read().decode()

    def call(self, tool, arguments, headers={}):
        """A session with one call; gives the text of its answer."""
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "check", "version": "1"}}
        session, _ = self.ask({"id": 1, "method": "initialize", "params": hello}, headers)
        headers = {**headers, "Mcp-Session-Id": session}
        self.ask({"method": "notifications/initialized"}, headers)
        self.ask({"id": 2, "method": "tools/list"}, headers)
        return self.ask({"id": 3, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}, headers)[1]

    def metrics(self):
        with urllib.request.urlopen(f"{self.admin}/metrics", timeout=30) as answer:
            return answer.read().decode()
