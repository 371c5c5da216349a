//! How Redis is reached: one server, a master by its sentinels, a cluster.
//!
//! A server is spoken to only while it says itself that it is a master; whoever was demoted would take writes that are
//! lost.

use std::time::Duration;

use redis::aio::{ConnectionLike as _, MultiplexedConnection};
use redis::cluster::ClusterClientBuilder;
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{MultipleNodeRoutingInfo, ResponsePolicy, RoutingInfo};
use redis::io::tcp::TcpSettings;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ConnectionInfo, IntoConnectionInfo as _,
    ProtocolVersion, PushInfo, RedisConnectionInfo, RedisError, RedisResult, TlsCertificates, Value, cmd,
};
use secrecy::ExposeSecret as _;

use super::reply::{self, words};
use super::state::{StoreRemark, Why};
use crate::settings::RedisSettings;
use crate::settings::store::{Login, RedisNode, RedisServers, SentinelSettings, Wire};

/// Knows where Redis is and how one comes in.
#[derive(Debug)]
pub(super) struct Dialer {
    settings: RedisSettings,
}

/// A connection that works.
#[derive(Clone)]
pub(super) enum Live {
    /// To one server.
    Node(MultiplexedConnection),
    /// To the nodes of a cluster.
    Cluster(ClusterConnection),
}

/// Hears what Redis pushes; called on the connection's own task, so it must not wait.
pub(super) type Pushed = Box<dyn Fn(PushInfo) -> Result<(), ()> + Send + Sync>;

/// Commands that are on their way to one connection; further ones wait for theirs, within their time.
const PIPELINE: usize = 1024;

// === impl Dialer ===

impl Dialer {
    pub(super) fn new(settings: RedisSettings) -> Self {
        Self { settings }
    }

    /// What is dialled, without credentials.
    pub(super) fn target(&self) -> String {
        self.settings.servers.to_string()
    }

    /// Whether keys of several slots may stand in one command.
    pub(super) fn is_cluster(&self) -> bool {
        matches!(self.settings.servers, RedisServers::Cluster(_))
    }

    /// Opens a connection for commands, and tells what is to be said about the server.
    pub(super) async fn dial(&self, probe: &Cmd) -> Result<(Live, Vec<StoreRemark>), Why> {
        let mut live = match &self.settings.servers {
            RedisServers::Single { node, database } => {
                let info = self.info(node, &self.settings.login, i64::from(*database))?;
                Live::Node(self.open(info, None).await?)
            }
            RedisServers::Sentinel(sentinel) => {
                let (master, _) = self.master(sentinel).await?;
                Live::Node(master)
            }
            RedisServers::Cluster(nodes) => Live::Cluster(self.cluster(nodes).await?),
        };
        let mut remarks = live.probe(probe, self.settings.timeout).await?;
        remarks.extend(live.remarks(self.settings.timeout).await);
        Ok((live, remarks))
    }

    /// Opens a connection that hears what is published; to any node of a cluster, since all hear all.
    pub(super) async fn listen(&self, pushed: Pushed) -> Result<MultiplexedConnection, Why> {
        match &self.settings.servers {
            RedisServers::Single { node, .. } => {
                self.open(self.info(node, &self.settings.login, 0)?, Some(pushed)).await
            }
            RedisServers::Sentinel(sentinel) => {
                let (_, node) = self.master(sentinel).await?;
                self.open(self.info(&node, &self.settings.login, 0)?, Some(pushed)).await
            }
            RedisServers::Cluster(nodes) => {
                let mut pushed = Some(pushed);
                let mut why = Why::Network;
                for node in nodes {
                    let info = self.info(node, &self.settings.login, 0)?;
                    // Tried without listening first, since the listener can be given away only once.
                    match self.open(info.clone(), None).await {
                        Ok(_) => return self.open(info, pushed.take()).await,
                        Err(failed) => why = failed,
                    }
                }
                Err(why)
            }
        }
    }

    /// The master as the first sentinel says that knows one which agrees.
    async fn master(&self, watched: &SentinelSettings) -> Result<(MultiplexedConnection, RedisNode), Why> {
        let mut why = Why::NoMaster;
        for sentinel in &watched.sentinels {
            match self.master_by(watched, sentinel).await {
                Ok(found) => return Ok(found),
                // What a sentinel's master says is worth more than that another sentinel is down.
                Err(failed) if why == Why::NoMaster || failed == Why::ReadOnly => why = failed,
                Err(_) => {}
            }
        }
        Err(if why == Why::ReadOnly { Why::NoMaster } else { why })
    }

    async fn master_by(
        &self,
        watched: &SentinelSettings,
        sentinel: &RedisNode,
    ) -> Result<(MultiplexedConnection, RedisNode), Why> {
        let mut asked = self.open(self.info(sentinel, &watched.login, 0)?, None).await?;
        let mut question = cmd("SENTINEL");
        question.arg("get-master-addr-by-name").arg(&watched.master);
        let said = within(self.settings.timeout, asked.req_packed_command(&question)).await?;
        let [host, port] = words(&said).try_into().map_err(|_| Why::NoMaster)?;
        let port = port.parse().map_err(|_| Why::NoMaster)?;
        let node = RedisNode { host, port, wire: watched.wire };
        let mut master = self.open(self.info(&node, &self.settings.login, 0)?, None).await?;
        role(&mut master, self.settings.timeout).await?;
        Ok((master, node))
    }

    async fn open(&self, info: ConnectionInfo, pushed: Option<Pushed>) -> Result<MultiplexedConnection, Why> {
        let timeout = Some(self.settings.timeout);
        let mut config = AsyncConnectionConfig::new()
            .set_connection_timeout(timeout)
            .set_response_timeout(timeout)
            .set_pipeline_buffer_size(PIPELINE);
        let mut info = info;
        if let Some(pushed) = pushed {
            config = config.set_push_sender(pushed);
            let redis = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
            info = info.set_redis_settings(redis);
        }
        let client = if matches!(info.addr(), ConnectionAddr::TcpTls { .. }) {
            Client::build_with_tls(info, self.certificates())
        } else {
            Client::open(info)
        };
        let client = client.map_err(|error| Why::of(&error))?;
        client.get_multiplexed_async_connection_with_config(&config).await.map_err(|error| Why::of(&error))
    }

    async fn cluster(&self, nodes: &[RedisNode]) -> Result<ClusterConnection, Why> {
        let infos: Vec<ConnectionInfo> =
            nodes.iter().map(|node| self.info(node, &Login::default(), 0)).collect::<Result<_, _>>()?;
        // Nothing is tried again by the library: it would also repeat writes that may have been done.
        let mut builder = ClusterClientBuilder::new(infos)
            .retries(0)
            .connection_timeout(self.settings.timeout)
            .response_timeout(self.settings.timeout)
            .tcp_settings(settings_of_tcp());
        if let Some(username) = &self.settings.login.username {
            builder = builder.username(username);
        }
        if let Some(password) = &self.settings.login.password {
            builder = builder.password(password.expose_secret());
        }
        if nodes.first().is_some_and(|node| node.wire == Wire::Tls) {
            builder = builder.certs(self.certificates());
        }
        let client = builder.build().map_err(|error| Why::of(&error))?;
        client.get_async_connection().await.map_err(|error| Why::of(&error))
    }

    fn info(&self, node: &RedisNode, login: &Login, database: i64) -> Result<ConnectionInfo, Why> {
        let (host, port) = (node.host.clone(), node.port);
        let address = match node.wire {
            Wire::Plain => ConnectionAddr::Tcp(host, port),
            Wire::Tls => ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None },
        };
        let mut redis = RedisConnectionInfo::default().set_db(database).set_skip_set_lib_name();
        if let Some(username) = &login.username {
            redis = redis.set_username(username);
        }
        if let Some(password) = &login.password {
            redis = redis.set_password(password.expose_secret());
        }
        let info = address.into_connection_info().map_err(|error| Why::of(&error))?;
        Ok(info.set_redis_settings(redis).set_tcp_settings(settings_of_tcp()))
    }

    fn certificates(&self) -> TlsCertificates {
        TlsCertificates { client_tls: None, root_cert: self.settings.ca.clone() }
    }
}

fn settings_of_tcp() -> TcpSettings {
    TcpSettings::default().set_nodelay(true)
}

// === impl Live ===

impl Live {
    /// Sends one command.
    pub(super) async fn send(&mut self, command: &Cmd) -> RedisResult<Value> {
        match self {
            Self::Node(node) => node.req_packed_command(command).await,
            Self::Cluster(cluster) => cluster.req_packed_command(command).await,
        }
        // An error may also come as a value.
        .and_then(Value::extract_error)
    }

    /// Whether it still leads to a server that is in charge and answers; of a cluster one has to, since each node
    /// speaks for its keys only.
    pub(super) async fn probe(&mut self, probe: &Cmd, timeout: Duration) -> Result<Vec<StoreRemark>, Why> {
        match self {
            Self::Node(node) => {
                let remarks = role(node, timeout).await?;
                within(timeout, self.send(probe)).await?;
                Ok(remarks)
            }
            Self::Cluster(cluster) => {
                let any = (MultipleNodeRoutingInfo::AllMasters, Some(ResponsePolicy::OneSucceeded));
                within(timeout, cluster.route_command(cmd("PING"), RoutingInfo::MultiNode(any))).await?;
                Ok(Vec::new())
            }
        }
    }

    /// What an operator should know about the server; not to be allowed to ask is no failure.
    async fn remarks(&mut self, timeout: Duration) -> Vec<StoreRemark> {
        let mut remarks = Vec::new();
        let mut policy = cmd("CONFIG");
        policy.arg("GET").arg("maxmemory-policy");
        match within(timeout, self.ask_all(policy)).await.map(|said| words(&said)) {
            Ok(said) => {
                let policies = said.iter().skip_while(|word| *word != "maxmemory-policy");
                let other =
                    policies.filter(|word| POLICIES.contains(&word.as_str())).find(|word| *word != KEEPS_ALL);
                match other {
                    Some(other) => remarks.push(StoreRemark::Evicts(other.as_str().into())),
                    None if !said.iter().any(|word| word == KEEPS_ALL) => {
                        remarks.push(StoreRemark::PolicyUnknown);
                    }
                    None => {}
                }
            }
            Err(_) => remarks.push(StoreRemark::PolicyUnknown),
        }
        let mut info = cmd("INFO");
        info.arg("server");
        let said = within(timeout, self.ask_all(info)).await.map(|said| words(&said)).unwrap_or_default();
        let versions =
            said.iter().flat_map(|text| text.lines()).filter_map(|line| line.strip_prefix("redis_version:"));
        remarks.extend(
            versions
                .filter(|version| is_too_old(version))
                .map(|v| StoreRemark::TooOld(v.trim().into()))
                .take(1),
        );
        remarks
    }

    async fn ask_all(&mut self, command: Cmd) -> RedisResult<Value> {
        match self {
            Self::Node(node) => node.req_packed_command(&command).await,
            Self::Cluster(cluster) => {
                let all = RoutingInfo::MultiNode((MultipleNodeRoutingInfo::AllMasters, None));
                cluster.route_command(command, all).await
            }
        }
    }
}

/// The policy under which nothing is thrown away, and the others.
const KEEPS_ALL: &str = "noeviction";
const POLICIES: [&str; 8] = [
    KEEPS_ALL,
    "allkeys-lru",
    "allkeys-lfu",
    "allkeys-random",
    "volatile-lru",
    "volatile-lfu",
    "volatile-random",
    "volatile-ttl",
];

fn is_too_old(version: &str) -> bool {
    let mut parts = version.split('.').map_while(|part| part.parse::<u32>().ok());
    let (major, minor) = (parts.next(), parts.next());
    matches!((major, minor), (Some(major), Some(minor)) if (major, minor) < (6, 2))
}

/// Refuses a server that does not say it is a master; one that may not be asked is let pass, with a remark.
async fn role(node: &mut MultiplexedConnection, timeout: Duration) -> Result<Vec<StoreRemark>, Why> {
    match within(timeout, node.req_packed_command(&cmd("ROLE"))).await {
        Ok(said) if reply::first_word(&said).as_deref() == Some("master") => Ok(Vec::new()),
        Ok(_) => Err(Why::ReadOnly),
        Err(Why::Denied) => Ok(vec![StoreRemark::RoleUnknown]),
        Err(why) => Err(why),
    }
}

/// The answer, if it comes in time and is none of an error.
pub(super) async fn within(
    timeout: Duration,
    answer: impl Future<Output = Result<Value, RedisError>>,
) -> Result<Value, Why> {
    let answer = tokio::time::timeout(timeout, answer).await.map_err(|_| Why::Timeout)?;
    answer.and_then(Value::extract_error).map_err(|error| Why::of(&error))
}
