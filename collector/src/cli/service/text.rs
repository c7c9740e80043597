//! The files that make a service manager start the collector.

/// Tells a file of ours from one that somebody wrote.
pub(super) const MARKER: &str = "Written by `hookspan install";
/// What launchd calls the collector.
pub(super) const LABEL: &str = "dev.hookspan.collector";

/// What the service runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// Program and arguments.
    pub words: Vec<String>,
    /// Variables of this shell that a login does not have.
    pub variables: Vec<(&'static str, String)>,
}

/// A unit of systemd.
pub(super) fn unit(run: &Run) -> String {
    // Variables are expanded in arguments alone: neither in the program's path nor in Environment.
    let (program, arguments) = run.words.split_first().map_or(("", &[][..]), |(a, b)| (a, b));
    let arguments = arguments.iter().map(|word| quoted(&word.replace('$', "$$")));
    let words: Vec<String> = std::iter::once(quoted(program)).chain(arguments).collect();
    let variables: String = run
        .variables
        .iter()
        .map(|(name, value)| format!("Environment={}\n", quoted(&format!("{name}={value}"))))
        .collect();
    // Exit code 2 is a wrong configuration, which another start does not mend.
    format!(
        "# {MARKER} --service`; `hookspan uninstall` removes it.\n\
         [Unit]\nDescription=hookspan collector and dashboard\n\n\
         [Service]\nExecStart={}\n{variables}Restart=on-failure\nRestartSec=5\nRestartPreventExitStatus=2\n\
         UMask=0077\nNoNewPrivileges=yes\nLockPersonality=yes\nRestrictRealtime=yes\nRestrictSUIDSGID=yes\n\
         SystemCallArchitectures=native\n\n\
         [Install]\nWantedBy=default.target\n",
        words.join(" ")
    )
}

/// A word between quotes, where systemd still expands `%`.
fn quoted(word: &str) -> String {
    let word = word.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%");
    format!("\"{word}\"")
}

/// An agent of launchd: a property list.
pub(super) fn agent(run: &Run) -> String {
    let words: String =
        run.words.iter().map(|word| format!("    <string>{}</string>\n", xml(word))).collect();
    let variables: String = run
        .variables
        .iter()
        .map(|(name, value)| {
            format!("    <key>{name}</key>\n    <string>{}</string>\n", xml(value))
        })
        .collect();
    let environment = match variables.is_empty() {
        true => String::new(),
        false => format!("  <key>EnvironmentVariables</key>\n  <dict>\n{variables}  </dict>\n"),
    };
    // Two hyphens would end the comment.
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
         <!-- {MARKER}`; `hookspan uninstall` removes it. -->\n\
         <plist version=\"1.0\">\n<dict>\n  <key>Label</key>\n  <string>{LABEL}</string>\n  \
         <key>ProgramArguments</key>\n  <array>\n{words}  </array>\n{environment}  \
         <key>RunAtLoad</key>\n  <true/>\n  <key>KeepAlive</key>\n  <dict>\n    \
         <key>SuccessfulExit</key>\n    <false/>\n  </dict>\n  \
         <key>Umask</key>\n  <integer>63</integer>\n</dict>\n</plist>\n"
    )
}

fn xml(word: &str) -> String {
    word.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The directory that a unit or an agent names.
pub(super) fn named_dir(text: &str) -> Option<String> {
    if let Some((_, rest)) = text.split_once("<string>--dir</string>") {
        let (_, rest) = rest.split_once("<string>")?;
        let (dir, _) = rest.split_once("</string>")?;
        return Some(dir.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"));
    }
    let (_, rest) = text.split_once("\"--dir\" \"")?;
    let mut dir = String::new();
    let mut chars = rest.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' => return Some(dir),
            '\\' => dir.extend(chars.next()),
            '%' | '$' => {
                dir.push(c);
                chars.next_if_eq(&c);
            }
            c => dir.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    use super::*;

    fn of(words: &[&str]) -> Run {
        Run {
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            variables: vec![("XDG_CONFIG_HOME", "/c d".to_owned())],
        }
    }

    #[test]
    fn a_unit_quotes_what_systemd_would_expand() {
        let text = unit(&of(&["/a $b/hookspan", "serve", "--dir", "/100%$x\"y\\z"]));
        let command = r#"ExecStart="/a $b/hookspan" "serve" "--dir" "/100%%$$x\"y\\z""#;
        assert!(text.contains(command), "{text}");
        assert!(text.contains("Environment=\"XDG_CONFIG_HOME=/c d\"\n"), "{text}");
        assert!(text.contains("\nRestartPreventExitStatus=2\n"), "{text}");
        assert_eq!(named_dir(&text).as_deref(), Some("/100%$x\"y\\z"));
        assert_eq!(named_dir(&unit(&of(&["/hookspan", "serve"]))), None);
    }

    #[test]
    fn an_agent_is_xml_whatever_the_path() {
        let text = agent(&of(&["/a&b/<hookspan>", "serve", "--dir", "/d&e/--f"]));
        assert!(text.contains("<string>/a&amp;b/&lt;hookspan&gt;</string>"), "{text}");
        assert_eq!(named_dir(&text).as_deref(), Some("/d&e/--f"));
        let comments = text.split("<!--").skip(1).map(|rest| rest.split("-->").next().unwrap());
        for comment in comments {
            assert!(!comment.contains("--"), "two hyphens end a comment: {comment}");
        }
    }

    /// With the reader of property lists that Python has, where there is Python.
    #[test]
    fn an_agent_is_a_property_list() {
        let script = "import plistlib, sys; print(plistlib.loads(sys.stdin.buffer.read())['ProgramArguments'])";
        let python = Command::new("python3")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let Ok(mut python) = python else {
            eprintln!("SKIPPED an_agent_is_a_property_list: there is no python3");
            return;
        };
        let text = agent(&of(&["/a&b/<h>", "serve", "--dir", "/d --e"]));
        python.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let output = python.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(said.trim(), "['/a&b/<h>', 'serve', '--dir', '/d --e']", "{text}");
    }
}
