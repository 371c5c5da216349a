//! The client capabilities that change what a server does, as a set of known flags: the *capability class*.

use super::object::Object;

/// The extension by which calls of the modern era become tasks.
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";
/// The extension by which tools bring pages of their own (`ui://`).
pub const UI_EXTENSION: &str = "io.modelcontextprotocol/ui";

/// A set of known client capabilities; two callers of one class can share what a server told one of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CapabilityClass(u16);

/// One known client capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Capability {
    /// `roots`
    Roots = 1,
    /// `sampling`
    Sampling = 1 << 1,
    /// `sampling.tools`
    SamplingTools = 1 << 2,
    /// `sampling.context`
    SamplingContext = 1 << 3,
    /// `elicitation.form`, which an empty `elicitation` means too
    ElicitationForm = 1 << 4,
    /// `elicitation.url`
    ElicitationUrl = 1 << 5,
    /// `tasks`, of the legacy era
    Tasks = 1 << 6,
    /// `extensions`: [`TASKS_EXTENSION`]
    TasksExtension = 1 << 7,
    /// `extensions`: [`UI_EXTENSION`]
    UiExtension = 1 << 8,
    /// `extensions`: any other
    OtherExtension = 1 << 9,
    /// Anything that is not known here
    Unknown = 1 << 10,
}

/// The names that stand for something here.
const KNOWN: [&str; 6] = ["roots", "sampling", "elicitation", "experimental", "tasks", "extensions"];

// === impl CapabilityClass ===

impl CapabilityClass {
    /// No capability: what a shared link offers.
    pub const NONE: Self = Self(0);

    /// Reads the `capabilities` object of an `initialize` request; what is unknown or no object is left out.
    pub fn of(capabilities: &str) -> Self {
        let mut class = Self::NONE;
        let Ok(all) = Object::parse(capabilities) else { return class };
        let part = |name| all.get(name).and_then(|raw| Object::parse(raw).ok());
        if part("roots").is_some() {
            class.add(Capability::Roots);
        }
        if let Some(sampling) = part("sampling") {
            class.add(Capability::Sampling);
            if sampling.get("tools").is_some() {
                class.add(Capability::SamplingTools);
            }
            if sampling.get("context").is_some() {
                class.add(Capability::SamplingContext);
            }
        }
        if let Some(elicitation) = part("elicitation") {
            let url = elicitation.get("url").is_some();
            if url {
                class.add(Capability::ElicitationUrl);
            }
            if elicitation.get("form").is_some() || !url {
                class.add(Capability::ElicitationForm);
            }
        }
        if part("tasks").is_some() {
            class.add(Capability::Tasks);
        }
        for (id, _) in part("extensions").iter().flat_map(Object::iter) {
            class.add(match id {
                TASKS_EXTENSION => Capability::TasksExtension,
                UI_EXTENSION => Capability::UiExtension,
                _ => Capability::OtherExtension,
            });
        }
        if all.iter().any(|(name, _)| !KNOWN.contains(&name)) {
            class.add(Capability::Unknown);
        }
        class
    }

    /// Whether the set has this one.
    pub fn has(self, capability: Capability) -> bool {
        self.0 & capability as u16 != 0
    }

    /// The set as a number, for keys.
    pub fn bits(self) -> u16 {
        self.0
    }

    /// The set of [`CapabilityClass::bits`].
    pub fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    fn add(&mut self, capability: Capability) {
        self.0 |= capability as u16;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_elicitation_means_forms() {
        let class = CapabilityClass::of(r#"{"elicitation":{},"x":1,"sampling":{"tools":{}}}"#);
        assert!(class.has(Capability::ElicitationForm) && !class.has(Capability::ElicitationUrl));
        assert!(class.has(Capability::Sampling) && class.has(Capability::SamplingTools));
        assert!(!class.has(Capability::Roots));
    }

    #[test]
    fn extensions_are_told_apart() {
        let class =
            CapabilityClass::of(r#"{"extensions":{"io.modelcontextprotocol/ui":{}},"experimental":{}}"#);
        assert!(class.has(Capability::UiExtension) && !class.has(Capability::TasksExtension));
        assert!(!class.has(Capability::OtherExtension) && !class.has(Capability::Unknown));
        let class = CapabilityClass::of(r#"{"extensions":{"com.example/x":{}},"walks":{}}"#);
        assert!(class.has(Capability::OtherExtension) && class.has(Capability::Unknown));
        assert_eq!(CapabilityClass::from_bits(class.bits()), class);
    }

    #[test]
    fn what_is_not_an_object_declares_nothing() {
        assert_eq!(CapabilityClass::of("null"), CapabilityClass::NONE);
        assert_eq!(CapabilityClass::of(r#"{"roots":null}"#), CapabilityClass::NONE);
    }
}
