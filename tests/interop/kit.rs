//! The kit: SDK clients, reference servers, and the test upstream that has all that the conformance suite looks for.
#![allow(dead_code, reason = "each test area uses a part of it")]

use std::path::{Path, PathBuf};

use tokio::process::Command;

use crate::binary::{Binary, MCPGATE};
use crate::process::{Process, command};

/// The kit, installed.
pub(crate) struct Kit {
    root: PathBuf,
}

/// A gateway in front of the test upstream in each era, over HTTP and over stdio: servers `http` and `stdio` know
/// only `initialize`, `http-modern` and `stdio-modern` only 2026-07-28.
pub(crate) struct Wired {
    pub(crate) gateway: Binary,
    /// The URL of the legacy upstream itself.
    pub(crate) direct: String,
    /// The URL of the modern upstream itself.
    pub(crate) direct_modern: String,
    /// A key that opens the gateway, if it asks for one.
    pub(crate) key: Option<String>,
    _upstreams: [Process; 2],
}

// === impl Kit ===

impl Kit {
    /// The kit; `None` if `MCPGATE_KIT` is `none`, where a test has to be skipped. Installs it if it is not there.
    pub(crate) async fn ready() -> Option<Self> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = match std::env::var("MCPGATE_KIT") {
            Ok(none) if none == "none" => {
                assert!(std::env::var_os("CI").is_none(), "MCPGATE_KIT=none: CI leaves out no test");
                eprintln!("skipped: MCPGATE_KIT=none leaves out what needs real clients and servers");
                return None;
            }
            Ok(root) => PathBuf::from(root),
            Err(_) => here.join("target/kit"),
        };
        let setup = command("bash").arg(here.join("tests/kit/setup.sh")).arg(&root).output().await.unwrap();
        assert!(
            setup.status.success(),
            "REAL CLIENTS AND SERVERS ARE MISSING: they cannot be installed in {root} (is there a network? \
             MCPGATE_KIT names a folder that has them; MCPGATE_KIT=none leaves these tests out).\n{said}",
            root = root.display(),
            said = String::from_utf8_lossy(&setup.stderr),
        );
        Some(Self { root: root.canonicalize().unwrap() })
    }

    /// A file of it.
    pub(crate) fn file(&self, path: &str) -> PathBuf {
        let file = self.root.join(path);
        assert!(file.exists(), "the kit has no {}", file.display());
        file
    }

    /// The entry of a reference server from npm.
    pub(crate) fn npm_server(&self, name: &str) -> PathBuf {
        self.file(&format!("servers/node_modules/@modelcontextprotocol/server-{name}/dist/index.js"))
    }

    /// The program of a reference server from PyPI.
    pub(crate) fn pypi_server(&self, name: &str) -> PathBuf {
        self.file(&format!("pysrv/bin/mcp-server-{name}"))
    }

    /// Node, about to run a file of it.
    pub(crate) fn node(&self, path: &str) -> Command {
        let mut node = command("node");
        node.arg(self.file(path));
        node
    }

    /// `server-everything` over Streamable HTTP, and its URL.
    pub(crate) async fn everything_over_http(&self) -> (Process, String) {
        let mut node = command("node");
        node.arg("--import").arg(self.file("tools/loopback.mjs"));
        node.arg(self.npm_server("everything")).arg("streamableHttp").env("PORT", "0");
        let server = Process::start(&mut node);
        let address =
            server.line(|line| line.strip_prefix("loopback: listening at ").map(str::to_owned)).await;
        (server, format!("http://{address}/mcp"))
    }

    /// A gateway in front of the test upstream that lets everybody in.
    pub(crate) async fn open(&self) -> Wired {
        self.wired(None).await
    }

    /// The same that asks for a key.
    pub(crate) async fn keyed(&self) -> Wired {
        let made = command(MCPGATE).args(["hash-key", "--generate"]).output().await.unwrap();
        let made = String::from_utf8(made.stdout).unwrap();
        let part = |label| made.lines().find_map(|line| line.strip_prefix(label)).unwrap().trim().to_owned();
        self.wired(Some((part("key:"), part("hash:")))).await
    }

    async fn wired(&self, key: Option<(String, String)>) -> Wired {
        let (legacy, direct) = self.upstream("legacy").await;
        let (modern, direct_modern) = self.upstream("modern").await;
        let folder = tempfile::tempdir().unwrap();
        let mut config = self.servers(&direct, &direct_modern);
        if let Some((_, hash)) = &key {
            let keys = format!("keys: [ {{ id: kit, hash: '{hash}' }} ]\n");
            std::fs::write(folder.path().join("keys.yaml"), keys).unwrap();
            config.push_str("auth: { apiKeys: { file: keys.yaml } }\n");
        }
        let gateway = Binary::serve_in(folder, &config).await;
        let key = key.map(|(key, _)| key);
        Wired { gateway, direct, direct_modern, key, _upstreams: [legacy, modern] }
    }

    /// The config of the servers that [`Wired`] names, those over HTTP at these URLs.
    pub(crate) fn servers(&self, direct: &str, direct_modern: &str) -> String {
        let script = self.file("upstream/server.mjs");
        let stdio =
            |era| format!("{{ command: node, args: ['{}', --stdio, --era, {era}] }}", script.display());
        format!(
            "mcpServers:\n  http: {{ url: '{direct}' }}\n  stdio: {}\n  http-modern: {{ url: '{direct_modern}' }}\n  stdio-modern: {}\n",
            stdio("legacy"),
            stdio("modern")
        )
    }

    /// The test upstream of one era over HTTP, and its URL.
    pub(crate) async fn upstream(&self, era: &str) -> (Process, String) {
        let mut node = self.node("upstream/server.mjs");
        let upstream = Process::start(node.args(["--port", "0", "--era", era]));
        let before = format!("era {era} at ");
        let url = upstream.line(|line| line.split_once(&before).map(|(_, url)| url.to_owned())).await;
        (upstream, url)
    }
}
