//! Repairs a damaged body: turns its readable part into valid JSON.
//!
//! A pipe or a limit may cut a body. A body may contain line breaks and escapes that JSON forbids, or text after its
//! end. Everything before the damage is usable: the event, the ids, the tool.

/// Fields whose text is useful even if its end is missing. Half of an id or of an input would be wrong.
const TEXTS: [&str; 7] =
    ["prompt", "text", "tool_output", "tool_response", "output", "result_json", "content"];
/// Deepest nesting that is followed.
const LEVELS: usize = 128;

/// The readable part of `body` as one valid object; `None` if no object begins or no field is complete.
pub(crate) fn repair(body: &str) -> Option<String> {
    let mut scan = Scan { rest: body.trim_start().strip_prefix('{')? };
    let mut sound = String::with_capacity(body.len() + 2);
    sound.push('{');
    loop {
        let before = sound.len();
        if before > 1 {
            sound.push(',');
        }
        match scan.field(&mut sound) {
            Some(Next::More) => {}
            Some(Next::End) => break,
            None => {
                sound.truncate(before);
                break;
            }
        }
    }
    sound.push('}');
    (sound.len() > 2).then_some(sound)
}

enum Next {
    More,
    End,
}

struct Scan<'a> {
    rest: &'a str,
}

impl<'a> Scan<'a> {
    /// Reads a field and writes it. `None` if there is no complete field left.
    fn field(&mut self, sound: &mut String) -> Option<Next> {
        self.rest = self.rest.trim_start().strip_prefix('"')?;
        let start = sound.len();
        if !self.string(sound)? {
            return None;
        }
        let key = sound.get(start + 1..sound.len() - 1)?;
        let is_text = TEXTS.contains(&key);
        self.rest = self.rest.trim_start().strip_prefix(':')?.trim_start();
        sound.push(':');
        if let Some(rest) = self.rest.strip_prefix('"') {
            self.rest = rest;
            if !self.string(sound)? {
                return is_text.then_some(Next::End);
            }
        } else {
            self.value(sound)?;
        }
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(',') {
            Some(rest) => self.rest = rest,
            // Neither a field nor the end follows. The fields before this point count.
            None => return Some(Next::End),
        }
        Some(Next::More)
    }

    /// Writes the rest of a string after its opening quote, without what JSON forbids. Returns whether the closing
    /// quote was there.
    fn string(&mut self, sound: &mut String) -> Option<bool> {
        sound.push('"');
        loop {
            let at = self.rest.find(|c: char| matches!(c, '"' | '\\') || c < ' ');
            let (plain, special) = self.rest.split_at(at.unwrap_or(self.rest.len()));
            sound.push_str(plain);
            let mut chars = special.chars();
            match chars.next() {
                None => {
                    self.rest = "";
                    sound.push('"');
                    return Some(false);
                }
                Some('"') => {
                    self.rest = chars.as_str();
                    sound.push('"');
                    return Some(true);
                }
                Some('\\') => self.escape(special, sound),
                Some(control) => {
                    sound.push_str(&format!("\\u{:04x}", u32::from(control)));
                    self.rest = chars.as_str();
                }
            }
        }
    }

    /// Writes an escape. If the escape is invalid, its backslash is written as a literal backslash.
    fn escape(&mut self, special: &'a str, sound: &mut String) {
        let hex = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let len = match special.as_bytes().get(1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 2,
            Some(b'u') if special.get(2..6).is_some_and(hex) => 6,
            _ => 0,
        };
        // An escape that is cut off at the end is dropped.
        let (escape, rest) = special.split_at(len.max(1));
        match len {
            0 if rest.is_empty() => {}
            0 => sound.push_str("\\\\"),
            _ => sound.push_str(escape),
        }
        self.rest = rest;
    }

    /// Writes a number, a word, an array or an object, if it is complete.
    fn value(&mut self, sound: &mut String) -> Option<()> {
        let mut open: Vec<char> = Vec::new();
        let start = sound.len();
        loop {
            let first = self.rest.chars().next()?;
            match first {
                '"' => {
                    self.rest = &self.rest[1..];
                    if !self.string(sound)? {
                        return None;
                    }
                }
                '{' | '[' if open.len() < LEVELS => {
                    open.push(if first == '{' { '}' } else { ']' });
                    self.take(sound, 1);
                }
                '}' | ']' if open.last() == Some(&first) => {
                    open.pop();
                    self.take(sound, 1);
                }
                ',' | ':' if !open.is_empty() => self.take(sound, 1),
                ' ' | '\t' | '\r' | '\n' if !open.is_empty() => self.take(sound, 1),
                _ => {
                    let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
                    let len = self.rest.find(|c: char| !word(c))?;
                    if len == 0 {
                        return None;
                    }
                    self.take(sound, len);
                }
            }
            if open.is_empty() {
                break;
            }
        }
        let value = sound.get(start..)?;
        serde_json::from_str::<&serde_json::value::RawValue>(value).ok().map(drop)
    }

    fn take(&mut self, sound: &mut String, len: usize) {
        let (taken, rest) = self.rest.split_at(len);
        sound.push_str(taken);
        self.rest = rest;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::read::payload::Fields;

    #[test]
    fn what_stands_before_the_damage_is_kept() {
        let cases = [
            (r#"{"a":"x","tool_output":"{\"o\":\"yy"#, r#"{"a":"x","tool_output":"{\"o\":\"yy"}"#),
            (r#"{"a":"x","id":"half"#, r#"{"a":"x"}"#),
            (r#"{"a":"x","tool_input":{"command":"l"#, r#"{"a":"x"}"#),
            (r#"{"a":"x","b":tr"#, r#"{"a":"x"}"#),
            (r#"{"a":"x","b":12"#, r#"{"a":"x"}"#),
            (r#"{"a":[1,{"b":null}],"c"#, r#"{"a":[1,{"b":null}]}"#),
            (r#"{"a":"x"}}"#, r#"{"a":"x"}"#),
            (r#"{"a":"x"} {"b":1}"#, r#"{"a":"x"}"#),
            ("{\"t\":\"two\nlines\",\"a\":1}", r#"{"t":"two\u000alines","a":1}"#),
            (r#"{"t":"C:\work\x","a":1}"#, r#"{"t":"C:\\work\\x","a":1}"#),
            (r#"{"text":"cut \"#, r#"{"text":"cut "}"#),
            (r#"{"text":"cut \u12"#, r#"{"text":"cut \\u12"}"#),
            (r#"{"a":1 "b":2}"#, r#"{"a":1}"#),
            (r#"{"a":1,"b":[1}"#, r#"{"a":1}"#),
        ];
        for (body, expected) in cases {
            assert_eq!(repair(body).as_deref(), Some(expected), "{body}");
        }
        for body in ["", "[1]", "{", "{\"a\"", "{\"a\":", "null", "{}", "{\"a\":[1}"] {
            assert_eq!(repair(body), None, "{body}");
        }
    }

    proptest! {
        /// The result is valid JSON, no matter where the body was cut or what was inserted.
        #[test]
        fn a_repaired_body_is_sound(
            parts in prop::collection::vec(
                prop::sample::select(vec![
                    "{", "}", "[", "]", ",", ":", "\"a\":", "\"text\":", "\"x\"", "\"", "\\", "\\u00e9", "\\u1", "\n",
                    "1", "-", "01", "true", "nul", " ", "é", "{\"a\":1}",
                ]),
                0..24,
            ),
        ) {
            let body = format!("{{\"k\":1,{}", parts.concat());
            let sound = repair(&body);
            prop_assert!(sound.as_deref().is_some_and(|sound| Fields::parse(sound).is_some()), "{body} -> {sound:?}");
        }
    }
}
