//! How the server starts and ends.

use clap::Parser;

/// A stdio server that misbehaves on request.
#[derive(Debug, Parser)]
pub(crate) struct Options {
    /// Write this to stdout first, as it is.
    #[arg(long, default_value = "")]
    pub(crate) noise: String,
    /// Write this to stderr first, as it is.
    #[arg(long, default_value = "")]
    pub(crate) stderr: String,
    /// Read nothing for so many milliseconds.
    #[arg(long, default_value_t = 0)]
    pub(crate) delay: u64,
    /// Exit with this status when `initialize` comes.
    #[arg(long)]
    pub(crate) exit: Option<u8>,
    /// Never answer `initialize`.
    #[arg(long)]
    pub(crate) mute: bool,
    /// Answer `initialize` with an error.
    #[arg(long)]
    pub(crate) refuse: bool,
    /// The revision in the answer; empty for the one that was asked for.
    #[arg(long, default_value = "")]
    pub(crate) revision: String,
    /// Go on when stdin ends.
    #[arg(long)]
    pub(crate) ignore_eof: bool,
    /// Go on after SIGTERM.
    #[arg(long)]
    pub(crate) ignore_term: bool,
}
