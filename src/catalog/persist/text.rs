//! A server's catalog as text: what it said of itself and its lists, byte for byte as it wrote them.

use std::fmt::Write as _;
use std::sync::Arc;

use aws_lc_rs::digest;

use crate::catalog::Kind;
use crate::catalog::list::{List, ListReader};
use crate::catalog::shelf::CallerClass;
use crate::catalog::shelves::Shelves;
use crate::protocol::capability::CapabilityClass;
use crate::protocol::object::{Object, items, quoted};
use crate::protocol::revision::{Era, Revision};
use crate::settings::ServerSettings;
use crate::settings::servers::TransportSettings;
use crate::upstream::Introduction;

/// What the files of this form say they are.
const FORMAT: &str = "mcpgate-catalog-1";

/// The catalog as text.
pub(super) fn of(shelves: &Shelves) -> String {
    let server = shelves.server();
    let mut out =
        format!(r#"{{"format":"{FORMAT}","server":{},"reached":"{}""#, quoted(&server.name), reached(server));
    if let Some(introduction) = shelves.introduction() {
        let Introduction { revision, capabilities, server_info, instructions } = &*introduction;
        let _ = write!(
            out,
            r#","introduction":{{"revision":"{revision}","capabilities":{capabilities},"serverInfo":{server_info}"#
        );
        if let Some(instructions) = instructions {
            let _ = write!(out, r#","instructions":{}"#, quoted(instructions));
        }
        out.push('}');
    }
    out.push_str(r#","lists":["#);
    for (n, (kind, classes, list)) in lists(shelves).into_iter().enumerate() {
        let class = |c: &CallerClass| format!(r#"["{}",{}]"#, c.revision, c.capabilities.bits());
        let classes: Vec<String> = classes.iter().map(class).collect();
        let raws: Vec<&str> = list.items.iter().map(|i| &*i.raw).collect();
        let (comma, member) = (if n == 0 { "" } else { "," }, kind.member());
        let _ = write!(
            out,
            "{comma}\n{{\"kind\":\"{member}\",\"classes\":[{}],\"items\":[\n{}]}}",
            classes.join(","),
            raws.join(",\n")
        );
    }
    out.push_str("]}\n");
    out
}

/// Puts what the text says on the shelves.
///
/// # Errors
/// What is wrong with it; nothing was put then.
pub(super) fn take(text: &str, shelves: &Shelves) -> Result<(), &'static str> {
    let server = shelves.server();
    let file = Object::parse(text).map_err(|_| "it is no JSON object")?;
    if file.text("format").as_deref() != Some(FORMAT) {
        return Err("it has another format");
    }
    if file.text("server").as_deref() != Some(&server.name) {
        return Err("it is another server's");
    }
    if file.text("reached").as_deref() != Some(&reached(server)) {
        return Err("the server is reached in another way now");
    }
    let introduction = file.get("introduction").map(introduction).transpose()?;
    let mut read = Vec::new();
    for raw in file.get("lists").and_then(items).ok_or("it has no lists")? {
        read.push(list(raw, server, introduction.as_ref())?);
    }
    if let Some(introduction) = introduction {
        shelves.restore(introduction);
    }
    for (kind, classes, list) in read {
        for class in classes {
            shelves.shelf(class).put_last_good(kind, list.clone());
        }
    }
    Ok(())
}

type Kept = (Kind, Vec<CallerClass>, Arc<List>);

/// All lists, each once with the classes that have it.
fn lists(shelves: &Shelves) -> Vec<Kept> {
    let mut lists: Vec<Kept> = Vec::new();
    for (class, shelf) in shelves.by_class() {
        for kind in Kind::ALL {
            let Some(list) = shelf.last_good(kind) else { continue };
            match lists.iter_mut().find(|(k, _, l)| *k == kind && Arc::ptr_eq(l, &list)) {
                Some((_, classes, _)) => classes.push(class),
                None => lists.push((kind, vec![class], list)),
            }
        }
    }
    lists
}

fn introduction(raw: &str) -> Result<Introduction, &'static str> {
    let said = Object::parse(raw).map_err(|_| "its introduction is no object")?;
    let revision = said.text("revision").and_then(|r| Revision::parse(&r).ok());
    let object = |name| said.get(name).filter(|raw| raw.starts_with('{')).map(Into::into);
    Ok(Introduction {
        revision: revision.ok_or("its introduction has no revision")?,
        capabilities: object("capabilities").ok_or("its introduction has no capabilities")?,
        server_info: object("serverInfo").ok_or("its introduction has no serverInfo")?,
        instructions: said.text("instructions").map(Into::into),
    })
}

fn list(raw: &str, server: &ServerSettings, said: Option<&Introduction>) -> Result<Kept, &'static str> {
    let list = Object::parse(raw).map_err(|_| "a list is no object")?;
    let member = list.text("kind").ok_or("a list has no kind")?;
    let kind = Kind::ALL.into_iter().find(|k| k.member() == member).ok_or("a list has an unknown kind")?;
    let classes = list.get("classes").and_then(items).ok_or("a list has no classes")?;
    let classes: Option<Vec<CallerClass>> = classes.into_iter().map(class).collect();
    let over_http = matches!(server.transport, TransportSettings::Http(_));
    let mirrors = over_http && said.is_some_and(|said| said.revision.era() == Era::Modern);
    let reader = ListReader::new(kind, &server.name);
    let mut reader = if mirrors { reader.mirroring() } else { reader };
    let raws = list.get("items").and_then(items).ok_or("a list has no items")?;
    raws.into_iter().for_each(|raw| reader.item(raw));
    Ok((kind, classes.ok_or("a list has a class that is none")?, Arc::new(reader.finish())))
}

fn class(raw: &str) -> Option<CallerClass> {
    let (revision, capabilities): (String, u16) = serde_json::from_str(raw).ok()?;
    let capabilities = CapabilityClass::from_bits(capabilities);
    Some(CallerClass { revision: Revision::parse(&revision).ok()?, capabilities })
}

/// How the server is reached, as a digest: a catalog of what stood at another address is of no use.
fn reached(server: &ServerSettings) -> String {
    let mut context = digest::Context::new(&digest::SHA256);
    let mut part = |text: &str| {
        context.update(text.as_bytes());
        context.update(&[0]);
    };
    match &server.transport {
        TransportSettings::Stdio(stdio) => {
            part("stdio");
            part(&stdio.command);
            stdio.args.iter().for_each(|a| part(a));
        }
        TransportSettings::Http(http) => {
            part("http");
            part(http.url.as_str());
        }
    }
    context.finish().as_ref().iter().map(|b| format!("{b:02x}")).collect()
}
