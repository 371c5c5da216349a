//! The files of a configuration: the one it begins with, and those that its `include` names.
//!
//! At a start every file must be right, and all mistakes are told at once. Later each file stands for itself.

use std::path::{Path as FilePath, PathBuf};

use super::{Loader, Origin, read_tree, tree_of, typed};
use crate::settings::interpolate::interpolate;
use crate::settings::parts::{Again, Part, Parts, Root, Yields, unite};
use crate::settings::problem::{Remark, Review};
use crate::settings::resolve::Resolver;
use crate::settings::sources::Sources;
use crate::settings::tree::{Node, Path, Position, Value};
use crate::settings::{hosts, schema, written};

/// How many files `include` may name: teams, not tenants.
const MOST_FILES: usize = 256;
/// How large one of them may be; so is a `ConfigMap`.
const LARGEST: usize = 1 << 20;

/// Something that was read, and what is wrong with it.
struct Read<T> {
    it: T,
    review: Review,
}

/// Everything that was read again, the warnings, and what is wrong with files that keep their old state.
type Reread = (Parts, Vec<Remark>, Vec<Remark>);

// === impl Loader ===

impl Loader {
    /// Reads all files for the first time.
    pub(super) fn first(&self, sources: &mut Sources) -> Result<(Parts, Vec<Remark>), Vec<Remark>> {
        let Read { it: root, mut review } = self.root(sources).map_err(|remark| vec![remark])?;
        let files = files(&root, &mut review, sources, &[]);
        if files.is_empty() && root.part.servers.is_empty() && review.is_sound(&Path::of(["include"])) {
            let remedy = "callers find nothing until a file with a server is there";
            review.warning(&Path::of(["include"]), "matches no file, and there is no other server", remedy);
        }
        let (mut read, mut unread) = (Vec::new(), Vec::new());
        for file in files {
            match self.included(&file, &root, sources) {
                Ok(file) => read.push(file),
                Err(remark) => unread.push(remark),
            }
        }
        let found = {
            let parts: Vec<&Part> = std::iter::once(&root.part).chain(read.iter().map(|r| &r.it)).collect();
            // What a file that cannot be read would have named nobody knows.
            let unknown = if unread.is_empty() { root.unknown(&parts) } else { Vec::new() };
            let unknown = unknown.into_iter().map(|(selection, remark)| (0, selection.path.clone(), remark));
            let clashes = root.clashes(&parts).into_iter().filter_map(|clash| {
                let told = clash.sides.into_iter().nth(clash.told)?;
                Some((told.part, Path::of(["mcpServers"]).key(&told.server), told.remark))
            });
            unknown.chain(clashes).collect::<Vec<_>>()
        };
        for (part, path, remark) in found {
            let review = match part.checked_sub(1) {
                None => Some(&mut review),
                Some(n) => read.get_mut(n).map(|read| &mut read.review),
            };
            if let Some(review) = review.filter(|review| review.is_sound(&path)) {
                review.foreign(&path, [remark]);
            }
        }
        let mut included = Vec::new();
        let (mut warnings, mut problems) = (Vec::new(), Vec::new());
        let mut hear = |verdict: Result<Vec<Remark>, Vec<Remark>>| match verdict {
            Ok(more) => warnings.extend(more),
            Err(more) => problems.extend(more),
        };
        hear(review.verdict());
        for Read { it, review } in read {
            included.push(it);
            hear(review.verdict());
        }
        problems.extend(unread);
        if problems.is_empty() { Ok((Parts { root, included }, warnings)) } else { Err(problems) }
    }

    /// Reads all files again; the old state of one that is wrong is in `before`.
    pub(super) fn again(&self, before: &Parts, sources: &mut Sources) -> Result<Reread, Vec<Remark>> {
        let fresh = match self.root(sources) {
            Ok(Read { it, mut review }) => {
                let files = files(&it, &mut review, sources, &before.files());
                review.verdict().map(|warnings| (it, files, warnings))
            }
            Err(remark) => Err(vec![remark]),
        };
        let mut kept = match fresh {
            Ok((root, files, warnings)) => {
                let of_root = (root, Some(&before.root), files);
                match self.beside(of_root, before, sources) {
                    Ok((parts, more, kept)) => {
                        return Ok((parts, warnings.into_iter().chain(more).collect(), kept));
                    }
                    Err(Yields(remarks)) => remarks,
                }
            }
            Err(remarks) => remarks,
        };
        let root = before.root.clone();
        if root.patterns.is_empty() {
            return Err(kept);
        }
        let mut review = Review::new(&root.part.file, Node { at: Position::default(), ..Node::empty() });
        let files = files(&root, &mut review, sources, &before.files());
        if let Err(problems) = review.verdict() {
            kept.extend(
                problems
                    .into_iter()
                    .filter(|problem| !kept.iter().any(|k| k.what == problem.what))
                    .collect::<Vec<_>>(),
            );
        }
        match self.beside((root, None, files), before, sources) {
            Ok((parts, warnings, more)) => Ok((parts, warnings, kept.into_iter().chain(more).collect())),
            Err(Yields(more)) => Err(kept.into_iter().chain(more).collect()),
        }
    }

    /// Reads the files beside a root that is right; the root before it, if it is another.
    fn beside(
        &self,
        (root, root_before, files): (Root, Option<&Root>, Vec<PathBuf>),
        before: &Parts,
        sources: &mut Sources,
    ) -> Result<Reread, Yields> {
        let (mut warnings, mut kept) = (Vec::new(), Vec::new());
        let mut again = Vec::new();
        for file in files {
            let read = self.included(&file, &root, sources).map_err(|remark| vec![remark]);
            let fresh = match read.and_then(|Read { it, review }| review.verdict().map(|w| (it, w))) {
                Ok((part, more)) => {
                    warnings.extend(more);
                    Some(part)
                }
                Err(problems) => {
                    kept.extend(problems);
                    None
                }
            };
            again.push(Again { fresh, old: before.of(&file).cloned() });
        }
        let (parts, more) = unite(&root, root_before, again)?;
        kept.extend(more);
        Ok((parts, warnings, kept))
    }

    /// Reads the file that all begins with, or what stands for it on the command line.
    fn root(&self, sources: &mut Sources) -> Result<Read<Root>, Remark> {
        let (mut config, mut review, base) = match &self.origin {
            Origin::File(file) => {
                let (mut tree, mut review) = read_tree(file, sources)?;
                self.prepare(&mut tree, &mut review);
                (typed(tree, &schema(), &mut review), review, folder_of(file))
            }
            Origin::Command { name, command, args } => {
                let server = written::Server {
                    command: Some(command.clone()),
                    args: args.clone(),
                    ..written::Server::default()
                };
                single(name, server)
            }
            Origin::Url { name, url } => {
                single(name, written::Server { url: Some(url.clone()), ..written::Server::default() })
            }
        };
        if let Some(listen) = self.listen {
            config.listen = written::Address(listen);
            review.overridden(Path::of(["listen"]), "--listen");
        }
        if let Some(admin) = self.admin {
            config.admin.listen = admin;
            review.overridden(Path::of(["admin", "listen"]), "--admin");
        }
        let root = Resolver::new(&mut review, &self.environment, sources, base).resolve(config);
        Ok(Read { it: root, review })
    }

    /// Reads a file that `include` names.
    fn included(&self, file: &FilePath, root: &Root, sources: &mut Sources) -> Result<Read<Part>, Remark> {
        let bytes = sources.read_at_most(file, LARGEST);
        let (mut tree, mut review) = tree_of(file, bytes)?;
        refuse_what_is_for_the_root(&mut tree, &root.part.file, &mut review);
        self.prepare(&mut tree, &mut review);
        let included: written::Included = typed(tree, &schema::included(), &mut review);
        let mut resolver = Resolver::new(&mut review, &self.environment, sources, folder_of(file));
        let part = resolver.part(included.mcp_servers, &root.timeouts, root.max_message);
        Ok(Read { it: part, review })
    }

    fn prepare(&self, tree: &mut Node, review: &mut Review) {
        hosts::translate(tree, review);
        drop_disabled(tree);
        interpolate(tree, &Path::default(), &self.environment, review);
    }
}

/// The files that `include` names now, in the order of their paths. Of too many those that are `known` go first.
fn files(root: &Root, review: &mut Review, sources: &mut Sources, known: &[PathBuf]) -> Vec<PathBuf> {
    let include = Path::of(["include"]);
    let ourselves = root.part.file.canonicalize().ok();
    let mut files: Vec<PathBuf> = Vec::new();
    for (n, pattern) in root.patterns.iter().enumerate() {
        let listing = sources.list(pattern);
        let path = include.index(n);
        if let Some(trouble) = listing.trouble {
            review.problem(&path, trouble, "let this user read it, or name another folder");
            // What cannot be seen may be there still.
            files.extend(known.iter().filter(|file| pattern.fits(file)).cloned());
        }
        files.extend(listing.files);
    }
    files.retain(|file| ourselves.is_none() || file.canonicalize().ok() != ourselves);
    files.sort_by_key(|file| (!known.contains(file), file.clone()));
    files.dedup();
    if files.len() > MOST_FILES {
        let what = format!("names {} files, and at most {MOST_FILES} are read", files.len());
        review.problem(&include, what, "write more servers into one file");
        files.truncate(MOST_FILES);
    }
    files.sort();
    files
}

/// Says of each key that only the root may hold where it belongs, and cuts it out.
fn refuse_what_is_for_the_root(tree: &mut Node, root: &FilePath, review: &mut Review) {
    let Value::Map(entries) = &mut tree.value else { return };
    let (all, here) = (schema(), schema::included());
    let has = |schema: &serde_json::Value, key: &str| {
        schema.get("properties").and_then(|properties| properties.get(key)).is_some()
    };
    entries.retain(|entry| {
        let is_elsewhere = has(&all, &entry.key) && !has(&here, &entry.key) && !hosts::is_beside(&entry.key);
        if is_elsewhere {
            let what = "does not belong in an included file, which holds mcpServers and nothing else";
            let remedy = format!("write it in {}", root.display());
            review.problem_at(entry.at, &Path::of([entry.key.as_str()]), what, remedy);
        }
        !is_elsewhere
    });
}

/// Of a server that is switched off nothing counts: its variables and files need not be there.
fn drop_disabled(tree: &mut Node) {
    let Value::Map(entries) = &mut tree.value else { return };
    for servers in entries.iter_mut().filter(|entry| entry.key == "mcpServers") {
        let Value::Map(servers) = &mut servers.node.value else { continue };
        for server in servers.iter_mut().filter(|server| hosts::is_disabled(&server.node)) {
            let Value::Map(keys) = &mut server.node.value else { continue };
            keys.retain(|entry| entry.key == "disabled");
        }
    }
}

/// A config of one server that no file holds.
fn single(name: &str, server: written::Server) -> (written::Config, Review, PathBuf) {
    let config = written::Config {
        mcp_servers: written::Named(vec![(name.to_owned(), server)]),
        ..written::Config::default()
    };
    let nowhere = Node { at: Position::default(), ..Node::empty() };
    (config, Review::new(FilePath::new("command line"), nowhere), PathBuf::from("."))
}

/// Where relative paths of a file begin.
fn folder_of(file: &FilePath) -> PathBuf {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(FilePath::new(".")).to_owned()
}
