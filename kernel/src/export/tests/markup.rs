//! A reader of pages, strict where browsers forgive: every tag and attribute is one that this program
//! writes, everything that is opened is closed in order, links lead where links may lead.

use std::collections::HashSet;

const VOID: [&str; 6] = ["meta", "link", "br", "hr", "img", "input"];

const TAGS: &str = "html head meta title link style body script a header div button h1 h2 h3 h4 h5 h6 dl dt \
    dd p small time main section article details summary span b code pre em strong del blockquote ul ol li \
    table thead tbody tr th td br hr img nav input select option kbd footer";

const ATTRIBUTES: &str = "lang charset http-equiv content name rel href class type popovertarget aria-label id \
    title datetime hidden data-filter data-lang data-from target dir open start alt loading src popover \
    placeholder value";

/// What stands in a page.
#[derive(Debug, Default)]
pub(super) struct Read {
    /// All text outside of style and script, entities resolved.
    pub(super) text: String,
    pub(super) ids: HashSet<String>,
    pub(super) links: Vec<String>,
    pub(super) sources: Vec<String>,
    pub(super) style: String,
    pub(super) script: String,
    pub(super) policy: String,
}

/// Reads a page, or says what is wrong with it.
pub(super) fn read(html: &str) -> Result<Read, String> {
    let mut page = Read::default();
    let mut rest = html
        .strip_prefix("<!DOCTYPE html>\n")
        .ok_or("it has no doctype")?;
    let mut open: Vec<&str> = Vec::new();
    while let Some(at) = rest.find('<') {
        page.text.push_str(&plain(&rest[..at])?);
        rest = &rest[at..];
        if let Some(tag) = rest.strip_prefix("</") {
            let end = tag.find('>').ok_or("a tag that does not end")?;
            let opened = open.pop().unwrap_or_default();
            if opened != &tag[..end] {
                return Err(format!("<{opened}> is closed by </{}>", &tag[..end]));
            }
            rest = &tag[end + 1..];
            continue;
        }
        let (name, after) = tag(&mut page, &rest[1..])?;
        rest = after;
        match name {
            "style" | "script" => {
                let end = rest.find("</").ok_or("raw text that does not end")?;
                let raw = if name == "style" {
                    &mut page.style
                } else {
                    &mut page.script
                };
                raw.push_str(&rest[..end]);
                rest = &rest[end..];
                open.push(name);
            }
            name if VOID.contains(&name) => {}
            name => open.push(name),
        }
    }
    page.text.push_str(&plain(rest)?);
    match open.is_empty() {
        true => Ok(page),
        false => Err(format!("{open:?} are not closed")),
    }
}

/// Reads the rest of an opening tag.
fn tag<'a>(page: &mut Read, text: &'a str) -> Result<(&'a str, &'a str), String> {
    let end = text.find([' ', '>']).ok_or("a tag that does not end")?;
    let name = &text[..end];
    if !TAGS.split_whitespace().any(|known| known == name) {
        return Err(format!("a tag <{}>", name.escape_debug()));
    }
    let mut rest = &text[end..];
    while let Some(attribute) = rest.strip_prefix(' ') {
        let end = attribute
            .find(['=', ' ', '>'])
            .ok_or("an attribute that does not end")?;
        let key = &attribute[..end];
        if !ATTRIBUTES.split_whitespace().any(|known| known == key) {
            return Err(format!("an attribute {}", key.escape_debug()));
        }
        rest = &attribute[end..];
        let Some(value) = rest.strip_prefix("=\"") else {
            continue;
        };
        let end = value.find('"').ok_or("a value that does not end")?;
        take(page, name, key, plain(&value[..end])?)?;
        rest = &value[end + 1..];
    }
    let rest = rest
        .strip_prefix('>')
        .ok_or_else(|| format!("<{name} does not end"))?;
    Ok((name, rest))
}

fn take(page: &mut Read, name: &str, key: &str, value: String) -> Result<(), String> {
    match key {
        "id" if !page.ids.insert(value.clone()) => Err(format!("two ids {value}")),
        "href" => {
            let safe = ["#", "http://", "https://", "mailto:"]
                .iter()
                .any(|start| value.to_ascii_lowercase().starts_with(start));
            if !safe && (name, &*value) != ("link", "data:,") {
                return Err(format!("a link to {value}"));
            }
            page.links.push(value);
            Ok(())
        }
        "src" if !value.starts_with("data:image/") || value.starts_with("data:image/svg") => {
            Err(format!("a source {value}"))
        }
        "src" => {
            page.sources.push(value);
            Ok(())
        }
        "content" if value.contains("default-src") => {
            page.policy = value;
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Text with its entities resolved; characters that it must not have are refused.
fn plain(text: &str) -> Result<String, String> {
    let bad = |c: char| {
        matches!(
            c,
            '"' | '\'' | '>' | '\0' | '\u{1b}' | '\r' | '\u{202e}' | '\u{2066}'
        )
    };
    // Our own words have apostrophes nowhere.
    if let Some(bad) = text.chars().find(|c| bad(*c)) {
        let policy = text.starts_with("default-src");
        if !(policy && bad == '\'') {
            return Err(format!(
                "a bare {bad:?} in {:?}",
                text.chars().take(200).collect::<String>()
            ));
        }
    }
    let text = text
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"");
    Ok(text.replace("&#39;", "'").replace("&amp;", "&"))
}
