//! Inserts entries for `install`, and removes them exactly for `uninstall`.

use std::collections::{BTreeMap, BTreeSet};

use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged as _;
use serde::{Deserialize, Serialize};

use super::document::{Broken, Container, Document, Found};
use super::entry::{Entry, TIMEOUT_SECONDS};
use super::own_entries;
use super::recognise::Form;
use super::version::{self, Version};

/// What `install` inserted in a file in addition to the entries. With it, `uninstall` can tell our containers from
/// empty ones that were there before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    /// Inserted keys: `""` for the outermost object, `version`, `hooks`, `hooks/EVENT`.
    pub keys: BTreeSet<String>,
    /// Containers that were empty on one line (`{}`) before our insertion, with the spaces that we added before the closing
    /// bracket.
    pub opened: BTreeMap<String, String>,
    /// The text of a `version` because of which Cursor ignored the file. `install` replaced it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// By event, the text of the group that `install` replaced by an entry.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub groups: BTreeMap<String, String>,
}

/// Adds an entry for each of `events`, updates existing entries of ours, and removes those that are not wanted. Doing
/// it again changes nothing. `made` is extended.
///
/// If an event already runs the hook program in another form, it gets no entry, because it would be recorded twice. An
/// invalid `version` becomes 1.
///
/// # Errors
/// The text cannot be edited, or its `version` is newer than what hookspan knows.
pub fn install(
    text: &str,
    entry: &Entry,
    events: &[&str],
    made: &mut Made,
) -> Result<String, Broken> {
    let mut text = replace_groups(text, entry, made)?;
    text = remove_unwanted(&text, entry, events, made)?;
    make_root(&mut text, made)?;
    repair_version(&mut text, made)?;
    add_key(&mut text, "version", "1", made)?;
    add_key(&mut text, "hooks", "{}", made)?;
    let covered = covered(&Document::parse(&text)?);
    for event in events.iter().filter(|event| !covered.contains(**event)) {
        add_entry(&mut text, entry, event, made)?;
    }
    Ok(text)
}

/// Events that already run the hook program, in any form.
fn covered(document: &Document<'_>) -> BTreeSet<String> {
    let ours = own_entries::entries(document).into_iter().filter(own_entries::Ours::runs_here);
    ours.map(|ours| ours.event).collect()
}

fn add_entry(text: &mut String, entry: &Entry, event: &str, made: &mut Made) -> Result<(), Broken> {
    let document = Document::parse(text)?;
    if document.event(event).is_none()
        && let Some(hooks) = document.hooks().map(Container::object)
    {
        let name = serde_json::Value::String(event.to_owned());
        *text = append(&document, &hooks, &format!("{name}: []"), "hooks", made);
        made.keys.insert(format!("hooks/{event}"));
    }
    let document = Document::parse(text)?;
    if let Some(array) = document.event(event).map(Container::array) {
        let path = format!("hooks/{event}");
        *text = append(&document, &array, &entry.json(event), &path, made);
    }
    Ok(())
}

/// Replaces each group that contains only the hook program by a plain entry, because Cursor does not run groups.
/// Remembers the text of the first group of each event.
fn replace_groups(text: &str, entry: &Entry, made: &mut Made) -> Result<String, Broken> {
    let document = Document::parse(text)?;
    let mut replaced = text.to_owned();
    let mut groups = BTreeMap::new();
    let ours = own_entries::entries(&document);
    let alone = |ours: &&own_entries::Ours| ours.in_group && !ours.shares_group;
    let here = |ours: &&own_entries::Ours| !matches!(ours.recognised.form, Form::Elsewhere(_));
    for ours in ours.iter().filter(alone).filter(here).rev() {
        let element = document.event(&ours.event).and_then(|array| array.elements.get(ours.index));
        if let Some(group) = element {
            let range = group.start()..group.end();
            groups.extend(text.get(range.clone()).map(|old| (ours.event.clone(), old.to_owned())));
            replaced.replace_range(range, &entry.json(&ours.event));
        }
    }
    for (event, group) in groups {
        made.groups.entry(event).or_insert(group);
    }
    Ok(replaced)
}

/// Undoes [`replace_groups`]: puts a group back where the first entry of ours stands in its event.
fn restore_groups(text: &mut String, made: &Made) -> Result<(), Broken> {
    for (event, group) in &made.groups {
        let document = Document::parse(text)?;
        let found = document.found();
        let ours = found.iter().find(|found| found.is_ours() && found.event == *event);
        let element = ours.and_then(|ours| document.event(event)?.elements.get(ours.index));
        if let Some(range) = element.map(|entry| entry.start()..entry.end()) {
            text.replace_range(range, group);
        }
    }
    Ok(())
}

/// If Cursor would ignore the file because of its `version`, replaces the version by 1 and remembers the old text.
fn repair_version(text: &mut String, made: &mut Made) -> Result<(), Broken> {
    let document = Document::parse(text)?;
    match version::of(&document) {
        Version::Valid | Version::Missing => Ok(()),
        Version::Void { start, end, .. } => {
            let old = text.get(start..end).unwrap_or_default().to_owned();
            made.version.get_or_insert(old);
            text.replace_range(start..end, "1");
            Ok(())
        }
        Version::Newer(broken) => Err(broken),
    }
}

/// Undoes [`repair_version`], unless the version was edited since.
fn restore_version(text: &mut String, made: &Made) -> Result<(), Broken> {
    let Some(old) = &made.version else { return Ok(()) };
    let document = Document::parse(text)?;
    let value = document.root.as_ref().and_then(|root| root.get_number("version"));
    if let Some(value) = value.filter(|value| value.value == "1") {
        let range = value.start()..value.end();
        text.replace_range(range, old);
    }
    Ok(())
}

/// Removes every entry of ours, and containers listed in `made` that are then empty. An entry that replaced a group
/// becomes that group again. Without `made` (if the record is
/// lost), event arrays that contained only our entries count as ours.
///
/// `was_absent` means that the file did not exist before. In that case, `version` is kept only if other hooks need it.
///
/// # Errors
/// The text cannot be edited.
pub fn uninstall(text: &str, made: Option<&Made>, was_absent: bool) -> Result<String, Broken> {
    let known = made.is_some();
    let mut made = made.cloned().unwrap_or_default();
    if !known {
        let document = Document::parse(text)?;
        let ours = document.found().into_iter().filter(Found::is_ours);
        made.keys.extend(ours.map(|found| format!("hooks/{}", found.event)));
    }
    let mut text = text.to_owned();
    restore_groups(&mut text, &made)?;
    text = remove_where(&text, &mut made, |_| true)?;
    restore_version(&mut text, &made)?;
    remove_empty(&mut text, &["hooks"], &made)?;
    let document = Document::parse(&text)?;
    let version_is_needed = was_absent && document.hooks().is_some();
    if made.keys.contains("version") && !version_is_needed {
        remove_key(&mut text, &["version"], &made)?;
    }
    if made.keys.contains("") {
        remove_root(&mut text)?;
    }
    Ok(text)
}

fn remove_unwanted(
    text: &str,
    entry: &Entry,
    events: &[&str],
    made: &mut Made,
) -> Result<String, Broken> {
    let mut first = BTreeMap::new();
    for found in Document::parse(text)?.found().into_iter().filter(Found::is_ours) {
        if events.contains(&found.event.as_str()) {
            first.entry(found.event).or_insert(found.index);
        }
    }
    let text = remove_where(text, made, |found| first.get(&found.event) != Some(&found.index))?;
    update(&text, entry)
}

/// Rewrites our entries that differ from what `install` would write now.
fn update(text: &str, entry: &Entry) -> Result<String, Broken> {
    let document = Document::parse(text)?;
    let mut updated = text.to_owned();
    for found in document.found().into_iter().rev().filter(Found::is_ours) {
        let element =
            document.event(&found.event).and_then(|array| array.elements.get(found.index));
        let Some(Value::Object(object)) = element else { continue };
        let timeout = object.get_number("timeout").map(|timeout| timeout.value);
        let current = found.command == Some(entry.command(&found.event))
            && found.keys.len() == 2
            && timeout == Some(TIMEOUT_SECONDS.to_string().as_str());
        if !current {
            updated.replace_range(object.range.start..object.range.end, &entry.json(&found.event));
        }
    }
    Ok(updated)
}

/// Removes our entries for which `unwanted` is true, the last one first, and then arrays that were created for them.
fn remove_where(
    text: &str,
    made: &mut Made,
    unwanted: impl Fn(&Found) -> bool,
) -> Result<String, Broken> {
    let mut doomed: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let found = Document::parse(text)?.found();
    for found in found.into_iter().filter(|found| found.is_ours() && unwanted(found)) {
        doomed.entry(found.event).or_default().push(found.index);
    }
    let mut text = text.to_owned();
    for (event, indices) in &doomed {
        let document = Document::parse(&text)?;
        let Some(array) = document.event(event).map(Container::array) else { continue };
        let path = format!("hooks/{event}");
        text = remove_all(&document, &array, indices, made.opened.get(&path));
        remove_empty(&mut text, &["hooks", event], made)?;
        if Document::parse(&text)?.event(event).is_none() {
            made.keys.remove(&path);
            made.opened.remove(&path);
        }
    }
    Ok(text)
}

/// Removes the value at `path` if we created it and it is empty, without even a comment.
fn remove_empty(text: &mut String, path: &[&str], made: &Made) -> Result<(), Broken> {
    if !made.keys.contains(&path.join("/")) {
        return Ok(());
    }
    let document = Document::parse(text)?;
    let container = match path {
        ["hooks"] => document.hooks().map(Container::object),
        ["hooks", event] => document.event(event).map(Container::array),
        _ => None,
    };
    let Some(container) = container else { return Ok(()) };
    let inside = container.inside();
    if container.items.is_empty() && document.end_of_comments(inside) == inside {
        remove_key(text, path, made)?;
    }
    Ok(())
}

fn remove_key(text: &mut String, path: &[&str], made: &Made) -> Result<(), Broken> {
    let document = Document::parse(text)?;
    let (parent, name) = match path {
        [name] => (document.root.as_ref(), name),
        [.., name] => (document.hooks(), name),
        [] => return Ok(()),
    };
    let Some(parent) = parent else { return Ok(()) };
    let Some(index) = parent.properties.iter().position(|p| p.name.as_str() == *name) else {
        return Ok(());
    };
    let parent_path = path.get(..path.len() - 1).unwrap_or_default().join("/");
    let opened = made.opened.get(&parent_path);
    *text = remove(&document, &Container::object(parent), index, opened);
    Ok(())
}

/// Puts `{}` into a text that has no value, after its comments.
fn make_root(text: &mut String, made: &mut Made) -> Result<(), Broken> {
    let document = Document::parse(text)?;
    if document.root.is_some() {
        return Ok(());
    }
    let newline = newline(text);
    // Without its line break, a line comment at the end would swallow the following text.
    let at = document.end_of_comments(0);
    let mut insertion = format!("{{}}{newline}");
    if at > 0 {
        insertion.insert_str(0, newline);
    }
    text.insert_str(at, &insertion);
    made.keys.insert(String::new());
    Ok(())
}

/// The inverse of [`make_root`].
fn remove_root(text: &mut String) -> Result<(), Broken> {
    let document = Document::parse(text)?;
    let Some(root) = document.root.as_ref().map(Container::object) else { return Ok(()) };
    if !root.items.is_empty() || document.end_of_comments(root.inside()) != root.inside() {
        return Ok(());
    }
    let newline = newline(text);
    let mut place = root.range.start..root.range.end;
    if text.get(place.end..).is_some_and(|rest| rest.starts_with(newline)) {
        place.end += newline.len();
    }
    let comment = document.end_before(place.start);
    if comment > 0 && text.get(comment..place.start) == Some(newline) {
        place.start = comment;
    }
    text.replace_range(place, "");
    Ok(())
}

fn add_key(text: &mut String, key: &str, value: &str, made: &mut Made) -> Result<(), Broken> {
    let document = Document::parse(text)?;
    let Some(root) = &document.root else { return Ok(()) };
    if root.get(key).is_none() {
        *text =
            append(&document, &Container::object(root), &format!("\"{key}\": {value}"), "", made);
        made.keys.insert(key.to_owned());
    }
    Ok(())
}

/// Adds an item at the end of a container, in the style of the existing items.
///
/// If the last item has a trailing comma, the new item gets one, too. If not, a comma is added directly after the last
/// item. This tells [`remove`] later which comma was ours.
fn append(
    document: &Document<'_>,
    container: &Container,
    item: &str,
    path: &str,
    made: &mut Made,
) -> String {
    let text = document.text;
    let mut result = text.to_owned();
    let Some(last) = container.items.last() else {
        let at = document.end_of_comments(container.inside());
        let own_lines = has_line_break(text.get(container.inside()..container.close()));
        if own_lines || is_one_line(document) {
            let gap = if own_lines { line_start(document, container, None) } else { String::new() };
            result.insert_str(at, &format!("{gap}{item}"));
        } else {
            let gap = line_start(document, container, None);
            let close = format!("{}{}", newline(text), indent_at(text, container.range.start));
            result.insert_str(at, &format!("{gap}{item}{close}"));
            made.opened.insert(path.to_owned(), close);
        }
        return result;
    };
    let comma = document.comma_after(last.end);
    let at = document.end_of_line_comments(comma.map_or(last.end, |comma| comma.end));
    let gap = match has_line_break(text.get(at..container.close())) {
        true => line_start(document, container, Some(last.start)),
        false => " ".to_owned(),
    };
    let trailing = if comma.is_some() { "," } else { "" };
    result.insert_str(at, &format!("{gap}{item}{trailing}"));
    if comma.is_none() {
        result.insert(last.end, ',');
    }
    result
}

/// Removes an item from a container, with the space before it and the comma that was added with it.
fn remove(
    document: &Document<'_>,
    container: &Container,
    index: usize,
    opened: Option<&String>,
) -> String {
    remove_all(document, container, &[index], opened)
}

/// Removes items from a container. `indices` are ascending. The last item is removed first, so that earlier offsets stay valid.
fn remove_all(
    document: &Document<'_>,
    container: &Container,
    indices: &[usize],
    opened: Option<&String>,
) -> String {
    let mut result = document.text.to_owned();
    // The comma after this item was already removed together with the next item.
    let mut comma_is_gone = false;
    let mut followed = None;
    for &index in indices.iter().rev() {
        let Some(item) = container.items.get(index) else { continue };
        comma_is_gone &= followed == Some(index + 1);
        followed = Some(index);
        let start = document.end_before(item.start);
        let comma = document.comma_after(item.end).filter(|_| !comma_is_gone);
        if let Some(comma) = comma {
            result.replace_range(comma.start..comma.end, "");
            result.replace_range(start..item.end, "");
            comma_is_gone = false;
            continue;
        }
        let before = index.checked_sub(1).and_then(|before| container.items.get(before));
        let mut end = item.end;
        if let (None, Some(close)) = (before, opened)
            && result.get(end..).is_some_and(|rest| rest.starts_with(close))
        {
            end += close.len();
        }
        result.replace_range(start..end, "");
        let comma = before.and_then(|before| document.comma_after(before.end));
        if let Some(comma) = comma {
            result.replace_range(comma.start..comma.end, "");
        }
        comma_is_gone = comma.is_some();
    }
    result
}

/// The line break and indentation before a new item: those of its sibling, otherwise one step deeper than the
/// container.
fn line_start(document: &Document<'_>, container: &Container, sibling: Option<usize>) -> String {
    let text = document.text;
    let own_line = sibling.filter(|&at| {
        let line = text.get(..at).unwrap_or_default().rsplit(['\n', '\r']).next();
        line.is_some_and(|line| line.chars().all(|c| c == ' ' || c == '\t'))
    });
    match own_line {
        Some(at) => format!("{}{}", newline(text), indent_at(text, at)),
        None => {
            let outer = indent_at(text, container.range.start);
            format!("{}{outer}{}", newline(text), indent_step(document))
        }
    }
}

/// The white space that the line of `at` begins with.
fn indent_at(text: &str, at: usize) -> &str {
    let before = text.get(..at).unwrap_or_default();
    let start = before.rfind(['\n', '\r']).map_or(0, |newline| newline + 1);
    let line = before.get(start..).unwrap_or_default();
    line.get(..line.len() - line.trim_start_matches([' ', '\t']).len()).unwrap_or_default()
}

/// One step of indentation: that of the first property, otherwise two spaces.
fn indent_step(document: &Document<'_>) -> String {
    let first = document.root.as_ref().and_then(|root| Some((root, root.properties.first()?)));
    let step = first.and_then(|(root, property)| {
        let inner = indent_at(document.text, property.start());
        inner.strip_prefix(indent_at(document.text, root.range.start))
    });
    step.filter(|step| !step.is_empty()).unwrap_or("  ").to_owned()
}

/// If the text is on one line, it stays on one line.
fn is_one_line(document: &Document<'_>) -> bool {
    let Some(root) = &document.root else { return false };
    !root.properties.is_empty()
        && !has_line_break(document.text.get(root.range.start..root.range.end))
}

fn has_line_break(text: Option<&str>) -> bool {
    text.is_some_and(|text| text.contains(['\n', '\r']))
}

/// The line break of the first line. A file with mixed line breaks stays mixed.
fn newline(text: &str) -> &'static str {
    match text.find(['\n', '\r']) {
        Some(at) => line_break(text.get(at..).unwrap_or_default()),
        None => "\n",
    }
}

fn line_break(text: &str) -> &'static str {
    if text.starts_with("\r\n") {
        "\r\n"
    } else if text.starts_with('\n') {
        "\n"
    } else if text.starts_with('\r') {
        "\r"
    } else {
        ""
    }
}
