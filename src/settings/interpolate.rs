//! `${NAME}` in values, from the environment; quoted values too, keys never. `$${` stands for a literal `${`.
//!
//! `${NAME:-default}` and the hosts' spelling `${env:NAME}` are understood. No value is ever shown.

use super::environment::Environment;
use super::problem::Review;
use super::tree::{Node, Path, Value};

/// Why a reference cannot be replaced.
#[derive(Debug, PartialEq, Eq)]
struct Unresolved {
    what: String,
    remedy: String,
}

/// Replaces the references in every value beneath `node`.
pub(super) fn interpolate(node: &mut Node, path: &Path, environment: &Environment, review: &mut Review) {
    match &mut node.value {
        Value::Null => {}
        Value::Text(text) => match expand(&text.written, environment) {
            Ok(meant) => text.meant = meant,
            Err(unresolved) => {
                review.problem_at(node.at, path, unresolved.what, unresolved.remedy);
            }
        },
        Value::List(items) => {
            for (n, item) in items.iter_mut().enumerate() {
                interpolate(item, &path.index(n), environment, review);
            }
        }
        Value::Map(entries) => {
            for entry in entries {
                interpolate(&mut entry.node, &path.key(&entry.key), environment, review);
            }
        }
    }
}

fn expand(text: &str, environment: &Environment) -> Result<String, Unresolved> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        if let Some(before) = before.strip_suffix('$') {
            out.push_str(before);
            out.push_str("${");
            rest = after;
            continue;
        }
        out.push_str(before);
        let (reference, after) = after.split_once('}').ok_or_else(|| Unresolved {
            what: "`${` without its `}`".to_owned(),
            remedy: "close it, or write `$${` for a literal `${`".to_owned(),
        })?;
        out.push_str(&resolve(reference, environment)?);
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

fn resolve(reference: &str, environment: &Environment) -> Result<String, Unresolved> {
    let (name, default) = match reference.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (reference, None),
    };
    let name = name.strip_prefix("env:").unwrap_or(name);
    let legal = !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !legal {
        // What stands between the braces may be anything, so it is not repeated.
        return Err(Unresolved {
            what: "`${...}` that is not the name of an environment variable".to_owned(),
            remedy:
                "write ${NAME}, or `$${` for a literal `${`; what an editor asks for or fills in has to come \
                     from the environment"
                    .to_owned(),
        });
    }
    match (environment.get(name), default) {
        (Some(value), None) => Ok(value),
        // As in a shell, `:-` covers the empty value too.
        (Some(value), Some(_)) if !value.is_empty() => Ok(value),
        (_, Some(default)) => Ok(default.to_owned()),
        (None, None) => Err(Unresolved {
            what: format!("the environment variable {name} is not set"),
            remedy: format!("set it, write ${{{name}:-default}}, or `$${{` for a literal `${{`"),
        }),
    }
}

#[cfg(test)]
mod tests;
