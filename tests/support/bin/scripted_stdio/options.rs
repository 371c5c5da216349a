//! How the server starts and ends.

use clap::{Parser, ValueEnum};

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
    /// Answer `initialize` after so many milliseconds, reading nothing meanwhile.
    #[arg(long, default_value_t = 0)]
    pub(crate) initialize_delay: u64,
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
    /// The eras it speaks.
    #[arg(long, value_enum, default_value = "legacy")]
    pub(crate) era: Eras,
    /// What it does when `server/discover` comes.
    #[arg(long, value_enum, default_value = "answer")]
    pub(crate) discover: Discover,
    /// Answer `server/discover` after so many milliseconds, going on meanwhile.
    #[arg(long, default_value_t = 0)]
    pub(crate) discover_delay: u64,
}

/// The eras it speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Eras {
    /// `initialize` first, `server/discover` is an unknown method.
    Legacy,
    /// Every request says what it is in its `_meta`; `initialize` is refused.
    Modern,
    /// Each request in the era it is written in.
    Dual,
}

/// What it does when `server/discover` comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Discover {
    /// Answers, as its era does.
    Answer,
    /// Ends.
    Die,
    /// Never answers.
    Mute,
    /// Answers with error 7, as a server does that knows only its own codes.
    Refuse,
    /// Answers that it speaks only a revision that is newer still (-32022).
    Newer,
    /// Writes lines that are no messages, then answers.
    Junk,
    /// Answers with a result that says nothing.
    Blank,
}
