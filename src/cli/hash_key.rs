//! `mcpgate hash-key`: an API key to the hash that a key file holds.

use std::io::{IsTerminal as _, Read as _, Write as _};

use aws_lc_rs::{digest, rand};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use clap::Args;

use super::failure::Failure;

/// Turn an API key into the hash that a key file holds.
#[derive(Debug, Args)]
#[command(after_help = "\
The key is read from stdin, so that it stays out of the shell's history:
  mcpgate hash-key < key.txt
  mcpgate hash-key --generate")]
pub(super) struct HashKey {
    /// Make a new key and print it with its hash.
    #[arg(long)]
    generate: bool,
}

/// Hashes are not salted, so a key has to be too random to be guessed.
const SHORTEST: usize = 24;

// === impl HashKey ===

impl HashKey {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let mut out = std::io::stdout();
        if self.generate {
            let key = generate()?;
            writeln!(out, "key:  {key}\nhash: {}", hash(&key))?;
        } else {
            writeln!(out, "{}", hash(&read_key()?))?;
        }
        Ok(())
    }
}

#[expect(clippy::print_stderr, reason = "a prompt is for a person")]
fn read_key() -> Result<String, Failure> {
    let mut stdin = std::io::stdin();
    if stdin.is_terminal() {
        eprintln!("The key, then Enter and Ctrl-D (it is shown while you type):");
    }
    let mut text = String::new();
    stdin.by_ref().take(64 << 10).read_to_string(&mut text)?;
    let key = text.trim_end_matches(['\r', '\n']);
    if key.len() < SHORTEST || key.contains(char::is_whitespace) {
        let what = format!("an API key has at least {SHORTEST} characters and no spaces");
        return Err(Failure::usage(what, "mcpgate hash-key --generate makes one"));
    }
    Ok(key.to_owned())
}

fn generate() -> Result<String, Failure> {
    let mut bytes = [0; 32];
    rand::fill(&mut bytes).map_err(|_| anyhow::anyhow!("the system gives no random bytes"))?;
    Ok(format!("mcpg_{}", URL_SAFE_NO_PAD.encode(bytes)))
}

/// The line of a key file.
fn hash(key: &str) -> String {
    let digest = digest::digest(&digest::SHA256, key.as_bytes());
    let hex: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_hash_is_plain_sha256() {
        // `printf abc | sha256sum`
        let expected = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(super::hash("abc"), expected);
    }

    #[test]
    fn generated_keys_differ_and_are_long_enough() {
        let (one, other) = (super::generate().unwrap(), super::generate().unwrap());
        assert_ne!(one, other);
        assert!(one.len() >= super::SHORTEST && one.is_ascii());
    }
}
