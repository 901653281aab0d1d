//! `read`: text of a file, or an image (`extensions.md` §8.2).
//!
//! A file is streamed: lines outside the selection are counted and forgotten, so memory does not
//! grow with the file. Images are read whole and prepared on the blocking pool.

mod source;

mod image;
mod window;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use pliant_sdk::Error;
use pliant_sdk::message::{Content, Image};
use pliant_sdk::tool::{Tool, ToolCtx, ToolResult, ToolSpec};
use serde_json::{Value, json};

use self::image::{Format, Limits, Prepared};
use self::source::Source;
use self::window::{End, Selection, Window};
use crate::truncate::with_note;
use pliant_sdk::truncation::{self, MAX_BYTES, Truncation, size};
use pliant_sdk::utf8::Decoder;

/// Largest image file that is read.
const MAX_IMAGE: usize = 64 * 1024 * 1024;

/// The arguments.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
pub(crate) struct ReadInput {
    /// The file, absolute or relative to the working directory.
    path: String,
    /// First line to show, counted from 1.
    offset: Option<f64>,
    /// How many lines to show.
    limit: Option<f64>,
}

pub(crate) struct Read;

impl Tool for Read {
    type Input = ReadInput;

    fn spec(&self) -> ToolSpec {
        let description = "Show a file: its text, or the picture if it is a png, jpeg, gif, webp or \
            bmp image. Text stops after 2000 lines or 50KB, whichever comes first; a note then says \
            with which offset to read on.";
        ToolSpec {
            annotations: Some(json!({"readOnlyHint": true})),
            output_schema: Some(output_schema()),
            ..ToolSpec::new("read", description)
                .snippet("Show a text file or an image")
                .guideline("Look at files with read, not with cat or sed in a shell.")
        }
    }

    async fn execute(&self, input: ReadInput, ctx: ToolCtx) -> Result<ToolResult, Error> {
        let mut file = Source::open(&input.path, &ctx).await?;
        let start = file.sniff().await?;
        if let Some(format) = Format::of(&start) {
            return show_image(file, format, &ctx).await;
        }
        let selection = Selection::new(input.offset, input.limit);
        let end = match selection.end {
            End::Open => None,
            End::At(end) => Some(end),
            End::BeforeLast(left_out) => {
                let window = scan(file, Window::new(0, Some(0)), &ctx).await?;
                file = Source::open(&input.path, &ctx).await?;
                Some(window.finish().0.saturating_sub(left_out))
            }
        };
        let found = file.found.clone();
        let window = scan(file, Window::new(selection.start, end), &ctx).await?;
        show_text(&input.path, &found, selection.start, window)
    }
}

async fn scan(mut file: Source, mut window: Window, ctx: &ToolCtx) -> Result<Window, Error> {
    let mut decoder = Decoder::default();
    while let Some(chunk) = file.next().await? {
        if ctx.cancelled() {
            return Err(Error::cancelled());
        }
        decoder.push(&chunk, |text| window.push(text));
    }
    decoder.finish(|text| window.push(text));
    Ok(window)
}

fn show_text(path: &str, found: &str, start: usize, window: Window) -> Result<ToolResult, Error> {
    let first_line_bytes = window.first_line_bytes();
    let (total, shown) = window.finish();
    if start > 0 && start >= total {
        return Err(Error::invalid(format!(
            "offset {} is past the end of {path}, which has {total} lines.",
            start + 1
        )));
    }
    let text = match note(found, start, total, first_line_bytes, &shown) {
        Some(note) => with_note(&shown.content, &note),
        None => shown.content.clone(),
    };
    let mut result = ToolResult::text(text.clone()).with_structured(Value::String(text));
    if shown.truncated {
        result.details = Some(json!({"truncation": shown}));
    }
    Ok(result)
}

/// What follows a text of which something is left.
fn note(
    found: &str,
    start: usize,
    total: usize,
    first_line_bytes: usize,
    shown: &Truncation,
) -> Option<String> {
    let first = start + 1;
    let last = start + shown.output_lines;
    let next = last + 1;
    if shown.first_line_exceeds_limit {
        let (line, limit) = (size(first_line_bytes), size(MAX_BYTES));
        let quoted = found.replace('\'', r"'\''");
        return Some(format!(
            "Line {first} has {line}, more than the {limit} that fit. See a part of it with a shell: \
             sed -n '{first}p' '{quoted}' | head -c {MAX_BYTES}"
        ));
    }
    match shown.truncated_by {
        Some(truncation::Limit::Lines) => Some(format!(
            "Lines {first}-{last} of {total}. Read on with offset={next}."
        )),
        Some(truncation::Limit::Bytes) => Some(format!(
            "Lines {first}-{last} of {total}, as many as fit into {}. Read on with offset={next}.",
            size(MAX_BYTES)
        )),
        None if last < total => {
            let left = total - last;
            let lines = if left == 1 { "line" } else { "lines" };
            Some(format!("{left} more {lines}. Read on with offset={next}."))
        }
        None => None,
    }
}

async fn show_image(mut file: Source, format: Format, ctx: &ToolCtx) -> Result<ToolResult, Error> {
    let mut bytes = Vec::new();
    while let Some(chunk) = file.next().await? {
        if ctx.cancelled() {
            return Err(Error::cancelled());
        }
        bytes.extend_from_slice(&chunk);
        if bytes.len() > MAX_IMAGE {
            let reason = format!("the file is larger than {}", size(MAX_IMAGE));
            return Ok(without_picture(format, &reason));
        }
    }
    let limits = Limits::of_model(&ctx.scene().image_limits);
    let watch = ctx.clone();
    let prepared = ctx
        .host()
        .blocking(move || image::prepare(bytes, format, &limits, &|| watch.cancelled()))
        .await?;
    if ctx.cancelled() {
        return Err(Error::cancelled());
    }
    Ok(match prepared {
        Ok(prepared) => with_picture(format, &prepared, ctx),
        Err(reason) => without_picture(format, &reason),
    })
}

fn with_picture(format: Format, image: &Prepared, ctx: &ToolCtx) -> ToolResult {
    let note = image.note(format);
    let data = BASE64.encode(&image.bytes);
    let mut result = ToolResult::text(note.clone()).with_structured(
        json!({"type": "image", "data": data, "mimeType": image.mime_type, "note": note}),
    );
    result.content.push(Content::Image(Image {
        data,
        mime_type: image.mime_type.to_owned(),
        ..Image::default()
    }));
    if !ctx.scene().images {
        result.details = Some(json!({"imageUnsupportedByModel": true}));
    }
    result
}

fn without_picture(format: Format, reason: &str) -> ToolResult {
    let mime_type = format.mime_type();
    let text = format!("Image file ({mime_type}), left out: {reason}.");
    ToolResult::text(text.clone()).with_structured(Value::String(text))
}

fn output_schema() -> Value {
    json!({"anyOf": [
        {"type": "string"},
        {
            "type": "object",
            "properties": {
                "type": {"const": "image"},
                "data": {"type": "string"},
                "mimeType": {"type": "string"},
                "note": {"type": "string"},
            },
            "required": ["type", "data", "mimeType", "note"],
        },
    ]})
}

#[cfg(test)]
mod tests;
