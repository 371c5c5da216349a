//! Why a session ended, or ended here.

/// Why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// The caller's DELETE.
    Delete,
    /// No activity for `sessions.idle`.
    Idle,
    /// Older than `sessions.maxAge`.
    MaxAge,
    /// The process stops.
    Shutdown,
    /// Its endpoint is no longer configured.
    Reconfigured,
    /// It goes on at another replica, to which it was given up.
    Released,
    /// It goes on at another replica.
    Lost,
    /// It was ended at another replica, which takes leave of its servers.
    EndedElsewhere,
    /// An implicit one gave way to another at a cap.
    Displaced,
    /// An implicit one was for one call only, and that is over.
    CallOver,
}

// === impl EndReason ===

impl EndReason {
    /// Whether the session itself goes on, elsewhere.
    pub const fn goes_on(self) -> bool {
        matches!(self, Self::Released | Self::Lost)
    }

    /// Whether its servers are told by somebody else that it ended, or not at all.
    pub const fn leaves_servers(self) -> bool {
        self.goes_on() || matches!(self, Self::EndedElsewhere)
    }

    /// The word in metrics and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Delete => "delete",
            Self::Idle => "idle",
            Self::MaxAge => "max_age",
            Self::Shutdown => "shutdown",
            Self::Reconfigured => "reconfigured",
            Self::Released => "released",
            Self::Lost => "lost",
            Self::EndedElsewhere => "delete",
            Self::Displaced => "displaced",
            Self::CallOver => "finished",
        }
    }
}
