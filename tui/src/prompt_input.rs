//! The prompts that a command line asks for: what is piped in, attached files and the first message
//! are the first one, and every further message is another (`interfaces.md` §1.3).

use std::fs::{self, File};
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pliant_kernel::pipeline::Prompt;
use pliant_sdk::message::Content;
use serde_json::json;

use crate::args::Args;
use crate::say;

/// More is nothing that a model could read.
const MOST_TEXT: u64 = 16 << 20;

/// Services refuse larger pictures.
const MOST_IMAGE: u64 = 20 << 20;

/// What a device or an endless pipe may give.
const MOST_PIPED: u64 = 64 << 20;

/// The prompts, in their order.
///
/// # Errors
/// A sentence about what cannot be read; nothing has been sent then.
pub fn prompts(args: &Args, stdin: File) -> anyhow::Result<Vec<Prompt>> {
    let mut first = Prompt::text(piped(stdin)?);
    for file in &args.files {
        attach(&mut first, file)?;
    }
    let mut messages = args.messages.iter();
    first.text.extend(messages.next().map(String::as_str));
    let others = messages.map(Prompt::text);
    let all = [first].into_iter().chain(others);
    Ok(all
        .filter(|prompt| !prompt.text.is_empty() || !prompt.images.is_empty())
        .collect())
}

/// What is piped in, without the white space around it. A terminal is not read.
fn piped(stdin: File) -> anyhow::Result<String> {
    if stdin.is_terminal() {
        return Ok(String::new());
    }
    let mut bytes = Vec::new();
    let read = stdin.take(MOST_PIPED + 1).read_to_end(&mut bytes);
    read.context("Standard input cannot be read. Give it a file or </dev/null.")?;
    if bytes.len() as u64 > MOST_PIPED {
        bail!(
            "More than {} MB are piped in, which is more than a model can read.",
            MOST_PIPED >> 20
        );
    }
    Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
}

/// Adds a file to a prompt: a text as text, a picture as a picture. An empty one adds nothing.
fn attach(prompt: &mut Prompt, file: &Path) -> anyhow::Result<()> {
    let path = from_home(file);
    let path = std::path::absolute(&path)
        .with_context(|| format!("The file \"{}\" cannot be attached.", file.display()))?;
    let name = path.display();
    let bytes = read(&path).with_context(|| format!("The file {name} cannot be attached."))?;
    if bytes.is_empty() {
        return Ok(());
    }
    if let Some(mime_type) = image_type(&bytes) {
        let image =
            json!({"type": "image", "data": STANDARD.encode(&bytes), "mimeType": mime_type});
        prompt
            .images
            .push(serde_json::from_value::<Content>(image)?);
        prompt.text += &format!("<file name=\"{name}\"></file>\n");
        return Ok(());
    }
    if bytes.contains(&0) {
        bail!(
            "The file {name} cannot be attached: it is neither a text nor a picture (PNG, JPEG, GIF, WebP)."
        );
    }
    let text = String::from_utf8_lossy(&bytes);
    if matches!(text, std::borrow::Cow::Owned(_)) {
        say::warning(format_args!(
            "The file {name} is not wholly UTF-8; what cannot be read of it is shown to the model as \u{fffd}."
        ));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    prompt.text += &format!("<file name=\"{name}\">\n{text}\n</file>\n");
    Ok(())
}

/// The shell does not know that what follows `@` is a path.
fn from_home(file: &Path) -> PathBuf {
    match (file.strip_prefix("~"), std::env::home_dir()) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => file.to_owned(),
    }
}

/// The bytes of a regular file of a sensible size: a pipe or a device would block or never end.
fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let metadata = fs::metadata(path)?;
    if metadata.is_dir() {
        bail!("it is a directory; name the files in it");
    }
    if !metadata.is_file() {
        bail!("it is no regular file; pipe it in instead");
    }
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    Read::by_ref(&mut file).take(64).read_to_end(&mut bytes)?;
    let (most, kind) = match image_type(&bytes) {
        Some(_) => (MOST_IMAGE, "picture"),
        None => (MOST_TEXT, "text"),
    };
    if metadata.len() > most {
        bail!(
            "a {kind} may have {} MB, and it has {}",
            most >> 20,
            metadata.len() >> 20
        );
    }
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The kind of picture that services take, by its first bytes.
fn image_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', rest @ ..] if rest.get(4..8) == Some(b"WEBP") => {
            Some("image/webp")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_told_by_its_content() {
        // interfaces §1.3
        assert_eq!(image_type(b"RIFF0000WEBPVP8 "), Some("image/webp"));
        assert_eq!(image_type(b"GIF89a..."), Some("image/gif"));
        for text in [
            &b""[..],
            b"GIF89 is a format",
            b"RIFF",
            b"RIFF0000WAVE",
            b"\x89PNG",
        ] {
            assert_eq!(image_type(text), None, "{text:?}");
        }
    }
}
