//! The methods of the protocol's revisions (the unions of its schemas), and any other by its name.

use std::borrow::Cow;
use std::fmt;

macro_rules! methods {
    ($($variant:ident = $name:literal),* $(,)?) => {
        /// A method name; what no revision knows is kept as [`Method::Other`].
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum Method {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
            /// Any other name.
            Other(Box<str>),
        }

        impl Method {
            /// The names that are known, for metrics and tests.
            pub const KNOWN: &'static [&'static str] = &[$($name),*];

            /// The name as it stands on the wire.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $name,)*
                    Self::Other(name) => name,
                }
            }

            /// The name as a metric label: bounded, never a caller's own text (case-I09).
            pub fn label(&self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                    Self::Other(_) => "_other",
                }
            }
        }

        impl From<Cow<'_, str>> for Method {
            fn from(name: Cow<'_, str>) -> Self {
                match name.as_ref() {
                    $($name => Self::$variant,)*
                    _ => Self::Other(name.into()),
                }
            }
        }
    };
}

methods! {
    Initialize = "initialize",
    Ping = "ping",
    ToolsList = "tools/list",
    ToolsCall = "tools/call",
    PromptsList = "prompts/list",
    PromptsGet = "prompts/get",
    ResourcesList = "resources/list",
    ResourceTemplatesList = "resources/templates/list",
    ResourcesRead = "resources/read",
    ResourcesSubscribe = "resources/subscribe",
    ResourcesUnsubscribe = "resources/unsubscribe",
    Complete = "completion/complete",
    SetLevel = "logging/setLevel",
    Discover = "server/discover",
    Listen = "subscriptions/listen",
    TasksGet = "tasks/get",
    TasksResult = "tasks/result",
    TasksList = "tasks/list",
    TasksCancel = "tasks/cancel",
    TasksUpdate = "tasks/update",
    SamplingCreate = "sampling/createMessage",
    ElicitationCreate = "elicitation/create",
    RootsList = "roots/list",
    Initialized = "notifications/initialized",
    Cancelled = "notifications/cancelled",
    Progress = "notifications/progress",
    LogMessage = "notifications/message",
    RootsListChanged = "notifications/roots/list_changed",
    ToolsListChanged = "notifications/tools/list_changed",
    PromptsListChanged = "notifications/prompts/list_changed",
    ResourcesListChanged = "notifications/resources/list_changed",
    ResourcesUpdated = "notifications/resources/updated",
    ElicitationComplete = "notifications/elicitation/complete",
    Acknowledged = "notifications/subscriptions/acknowledged",
    TaskStatus = "notifications/tasks/status",
    TaskChanged = "notifications/tasks",
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
