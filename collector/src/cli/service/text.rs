//! The text of the files with which a service manager starts the collector.

/// Marks a file as ours, as opposed to one that somebody wrote.
pub(super) const MARKER: &str = "Written by `hookspan install";
/// What launchd calls the collector.
pub(super) const LABEL: &str = "dev.hookspan.collector";

/// What the service runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// Program and arguments.
    pub words: Vec<String>,
    /// Variables of this shell that are not set at login.
    pub variables: Vec<(&'static str, String)>,
    /// Folders that the service writes to: the state directory first, then the folders of its sockets.
    pub writable: Vec<String>,
    /// Whether the service may have a private `/tmp`. It may if none of its files is in `/tmp`.
    pub private_tmp: bool,
    /// Whether the service runs in a user namespace. Inside, all other accounts look the same.
    pub namespace: bool,
}

/// Restrictions that every user manager can apply.
const PLAIN: &str = "\
UMask=0077
NoNewPrivileges=yes
KeyringMode=private
LockPersonality=yes
MemoryDenyWriteExecute=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallErrorNumber=EPERM
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
SystemCallFilter=landlock_create_ruleset landlock_add_rule landlock_restrict_self
";

/// Restrictions that a user manager can apply only in a user namespace, because it has no privileges outside of one.
/// Without `PrivateUsers` the service would fail with 218/CAPABILITIES. Settings are left out if a user manager ignores
/// them (`IPAddressDeny`) or fails with them (`ProtectKernelLogs`, `ProtectKernelTunables`: 226/NAMESPACE with systemd
/// 252, where services of a user manager have no privileges to lose). Home and `/proc` are not hidden, because the
/// collector reads hooks.json and transcripts, and asks which account owns a connection.
const IN_NAMESPACE: &str = "\
PrivateUsers=yes
CapabilityBoundingSet=
PrivateDevices=yes
PrivateMounts=yes
ProtectSystem=strict
ProtectHome=read-only
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelModules=yes
";

/// A unit of systemd.
pub(super) fn unit(run: &Run) -> String {
    // systemd expands variables only in arguments, and neither in the program's path nor in Environment.
    let (program, arguments) = run.words.split_first().map_or(("", &[][..]), |(a, b)| (a, b));
    let arguments = arguments.iter().map(|word| quoted(&word.replace('$', "$$")));
    let words: Vec<String> = std::iter::once(quoted(program)).chain(arguments).collect();
    let variables: String = run
        .variables
        .iter()
        .map(|(name, value)| format!("Environment={}\n", quoted(&format!("{name}={value}"))))
        .collect();
    let confined = if run.namespace { in_namespace(run) } else { String::new() };
    // Exit code 2 means a wrong configuration, which a restart does not repair. With `Type=exec`, `systemctl` reports
    // if the manager cannot apply the restrictions.
    format!(
        "# {MARKER} --service`; `hookspan uninstall` removes it.\n\
         [Unit]\nDescription=hookspan collector and dashboard\n\n\
         [Service]\nType=exec\nExecStart={}\n{variables}Restart=on-failure\nRestartSec=5\nRestartPreventExitStatus=2\n\
         {PLAIN}{confined}\n\
         [Install]\nWantedBy=default.target\n",
        words.join(" ")
    )
}

fn in_namespace(run: &Run) -> String {
    // A missing folder must not keep the service from starting, because the collector says better what is wrong. A path
    // may contain spaces, so each path has a line of its own, in quotes.
    let writable: String = run
        .writable
        .iter()
        .map(|path| format!("ReadWritePaths={}\n", quoted(&format!("-{path}"))))
        .collect();
    let tmp = if run.private_tmp { "PrivateTmp=yes\n" } else { "ReadWritePaths=/tmp /var/tmp\n" };
    format!("{IN_NAMESPACE}{tmp}{writable}")
}

/// A word in quotes. systemd still expands `%` in it.
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

/// The state directory that a unit or an agent names.
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
            writable: vec!["/home/u/state $ 100%".to_owned()],
            private_tmp: true,
            namespace: true,
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

    /// The settings of `[Service]`, in order.
    fn settings(text: &str) -> Vec<(&str, &str)> {
        let (_, service) = text.split_once("[Service]\n").unwrap();
        let (service, _) = service.split_once("\n\n[Install]").unwrap();
        service.lines().map(|line| line.split_once('=').unwrap()).collect()
    }

    #[test]
    fn a_unit_gives_up_what_a_user_manager_can_take_away() {
        let text = unit(&of(&["/hookspan", "serve"]));
        let settings = settings(&text);
        let value = |key: &str| {
            let found: Vec<_> =
                settings.iter().filter(|one| one.0 == key).map(|one| one.1).collect();
            found.join("|")
        };
        assert_eq!(value("ReadWritePaths"), "\"-/home/u/state $ 100%%\"");
        assert_eq!(value("PrivateTmp"), "yes");
        // Without a user namespace, a user service can neither drop capabilities nor have its own mounts.
        assert_eq!(
            (value("PrivateUsers"), value("CapabilityBoundingSet")),
            ("yes".into(), "".into())
        );
        assert!(value("SystemCallFilter").contains("landlock_restrict_self"), "{text}");
        for known in
            ["NoNewPrivileges", "MemoryDenyWriteExecute", "RestrictNamespaces", "PrivateDevices"]
        {
            assert_eq!(value(known), "yes", "{known}");
        }
        for refused in ["User", "IPAddressDeny", "AmbientCapabilities", "DynamicUser"] {
            assert!(
                settings.iter().all(|one| one.0 != refused),
                "{refused} is nothing for a user manager"
            );
        }
        let in_tmp = Run { private_tmp: false, ..of(&["/hookspan", "serve"]) };
        let text = unit(&in_tmp);
        let elsewhere = unit(&Run { namespace: false, ..of(&["/hookspan", "serve"]) });
        for needs_it in ["PrivateUsers", "CapabilityBoundingSet", "Protect", "ReadWritePaths"] {
            assert!(
                !elsewhere.contains(needs_it),
                "{needs_it} fails without a namespace: {elsewhere}"
            );
        }
        assert!(elsewhere.contains("SystemCallFilter=@system-service\n"), "{elsewhere}");
        assert!(
            !text.contains("PrivateTmp") && text.contains("ReadWritePaths=/tmp /var/tmp\n"),
            "{text}"
        );
    }

    /// Uses systemd's own verifier, if it is installed.
    #[test]
    fn systemd_finds_little_exposed() {
        let folder = tempfile::tempdir().unwrap();
        let units = [
            ("hookspan.service", unit(&of(&["/bin/true", "serve"]))),
            (
                "hookspan@.service",
                include_str!("../../../../deploy/systemd/hookspan@.service").to_owned(),
            ),
        ];
        for (name, text) in units {
            let path = folder.path().join(name);
            std::fs::write(&path, &text).unwrap();
            let judged = Command::new("systemd-analyze")
                .args(["security", "--offline=true", "--no-pager", "--threshold=25"])
                .arg(&path)
                .output();
            let Ok(judged) = judged else {
                eprintln!("SKIPPED systemd_finds_little_exposed: there is no systemd-analyze");
                return;
            };
            let said = String::from_utf8_lossy(&judged.stdout);
            eprintln!("{}", said.lines().last().unwrap_or_default());
            assert!(judged.status.success(), "{said}{}", String::from_utf8_lossy(&judged.stderr));
        }
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

    /// Uses Python's parser of property lists, if Python is installed.
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
