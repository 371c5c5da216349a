//! Sessions and streams of legacy callers, as they look on the wire.

#[path = "../support/client.rs"]
mod client;
#[path = "../support/gateway.rs"]
mod gateway;
#[path = "../support/http_server.rs"]
mod http_server;
mod lifecycle;
