use proptest::prelude::*;

use super::executable;

/// Checks the program of each command.
#[track_caller]
fn check(cases: &[(&str, Option<&str>)]) {
    for (command, expected) in cases {
        assert_eq!(executable(command), *expected, "{command}");
    }
}

#[test]
fn a_command_that_starts_one_program_is_named() {
    check(&[
        ("cargo test", Some("cargo")),
        ("cd /x/y && cargo build --release", Some("cargo")),
        ("RUST_LOG=debug /usr/bin/git status", Some("git")),
        ("'C:\\tools\\rg.exe' x", Some("rg.exe")),
        ("./scripts/x.sh --all", Some("x.sh")),
        ("node_modules/.bin/eslint .", Some("eslint")),
        ("~/bin/deploy", Some("deploy")),
        ("python3 -m pytest -q", Some("python3")),
        ("g++ a.cc", Some("g++")),
        ("\\ls -a", Some("ls")),
        ("ls", Some("ls")),
        ("cd /tmp", Some("cd")),
        ("/nix/store/0c1xzr5gl8s3k7pkj2x2q9dhn3bxfwgy-git-2.4/bin/git log", Some("git")),
        ("i686-w64-mingw32-g++ a.cc", Some("i686-w64-mingw32-g++")),
        ("Get-NetTCPConnection -State Listen", Some("Get-NetTCPConnection")),
        ("bash -lc \"TOKEN=x npm publish\"", Some("bash")),
        ("powershell -Command \"Get-Process\"", Some("powershell")),
    ]);
}

#[test]
fn several_programs_have_no_one_name() {
    check(&[
        ("ls | wc -l", None),
        ("a; b", None),
        ("cd x && a && b", None),
        ("git add . && git commit -m x", None),
        ("a || b", None),
        ("a & b", None),
        ("a\nb", None),
        ("(cd x; make)", None),
        ("{ make; }", None),
        ("for f in *; do rm $f; done", None),
        ("if true; then make; fi", None),
        ("build() { make; }", None),
        ("build () { make; }", None),
        ("function build { make; }", None),
        ("[ -f x ] && make", None),
        ("! make", None),
        ("", None),
        ("# only a comment", None),
    ]);
}

#[test]
fn values_of_assignments_are_never_names() {
    check(&[
        ("AUTH=\"Bearer sk-ant-api03-abc\" curl -H \"$AUTH\" https://x.example", Some("curl")),
        ("TOKEN=\"a X\" npm publish", Some("npm")),
        ("MSG=\"fix: rotate key\" git commit", Some("git")),
        ("X=\"--password P\" mysql", Some("mysql")),
        ("A=b C='d e' F=$'g h' I=$\"j k\" cmd", Some("cmd")),
        ("A+=b cmd", Some("cmd")),
        ("A=b\\ c cmd", Some("cmd")),
        ("A=\"it's\" cmd", Some("cmd")),
        ("A=${B} cmd", Some("cmd")),
        ("A=$(cat f | tr a b) cmd", Some("cmd")),
        ("A=\"$(printf \"%s %s\" a b) c\" cmd", Some("cmd")),
        ("A=1 \\\n  B=2 \\\n  cmd", Some("cmd")),
        ("A=\"b c\"; cmd", Some("cmd")),
        ("A='{\"b\": \"c d\"}' cmd", Some("cmd")),
        ("A=b >out cmd", None),
        ("A=b> secret cmd", None),
        ("A=b 2> secret cmd", None),
        ("A=b &> secret cmd", None),
        ("> secret cmd", None),
        ("A=b\rsecret cmd", None),
        ("A=b", None),
        ("A= secret", None),
        ("A = secret", None),
        ("my-token=\"a secret\" cmd", None),
        ("A[0]=\"b secret\" cmd", None),
        ("A=(b secret) cmd", None),
        ("A=$[1 + secret] cmd", None),
        ("A=${B:-c secret} cmd", None),
        ("A=`cat secret` cmd", None),
        ("A=$(case x in x) echo secret;; esac) cmd", None),
        ("A=$(cat <<E\n) secret\nE\n) cmd", None),
        ("A=$(echo # )\necho secret) cmd", None),
        ("A=\"b secret", None),
        ("A='b secret", None),
    ]);
}

#[test]
fn programs_that_start_a_program_are_looked_through() {
    check(&[
        ("env A=b cmd x", Some("cmd")),
        ("env -i -u X A=\"b c\" cmd", Some("cmd")),
        ("/usr/bin/env python3 x.py", Some("python3")),
        ("env -S \"a b\" c", Some("env")),
        ("env", Some("env")),
        ("sudo apt-get install -y x", Some("apt-get")),
        ("sudo -u postgres -E -- psql -c 'select 1'", Some("psql")),
        ("sudo -u \"some body\" cmd", Some("cmd")),
        ("sudo --unknown secret cmd", Some("sudo")),
        ("sudo A=\"b c\" cmd", Some("cmd")),
        ("nohup npm start > out.log 2>&1 &", Some("npm")),
        ("time cargo build", Some("cargo")),
        ("exec ./server", Some("server")),
        ("exec 2>&1", Some("exec")),
        ("command ls", Some("ls")),
        ("command -v node", Some("command")),
        ("nice -n 5 make", Some("make")),
        ("timeout 60s cargo test", Some("cargo")),
        ("timeout -k 5 1.5m env CI=1 npm test", Some("npm")),
        ("timeout secret cmd", Some("timeout")),
        ("sudo $(which x) y", Some("sudo")),
        ("sudo > secret cmd", Some("sudo")),
        ("env A=b> secret cmd", Some("env")),
        ("env A= secret", Some("env")),
        ("time -f secret cmd", Some("time")),
    ]);
}

#[test]
fn setup_before_the_program_is_skipped() {
    check(&[
        ("set -e; cmd", Some("cmd")),
        ("set -euo pipefail\ncd x\nmake", Some("make")),
        ("export A=\"b c\" && cmd", Some("cmd")),
        ("source .venv/bin/activate && pytest -x", Some("pytest")),
        (". ./env.sh; cmd", Some("cmd")),
        ("cd x || exit 1\nmake", Some("make")),
        ("cd \"$(git rev-parse --show-toplevel)\" && npm test", Some("npm")),
        ("cd /a/My\\ Documents && ls", Some("ls")),
        ("cd x >/dev/null 2>&1 && ls", Some("ls")),
        ("cd x && # now build\nmake", Some("make")),
        ("cd x # go there\nmake", Some("make")),
        ("# build it\nmake", Some("make")),
        ("cd x && set -e", Some("set")),
        ("cd x | cmd", None),
        ("cd x & cmd", None),
        ("cd x &&", None),
        ("export A=<(secret) && cmd", None),
        ("export A=\"b\\\" secret\" && cmd", None),
        ("cd {a; secret} && cmd", None),
    ]);
}

#[test]
fn what_follows_the_name_is_read_to_its_end() {
    check(&[
        ("cargo test 2>&1", Some("cargo")),
        ("cargo test &> out", Some("cargo")),
        ("cargo test;", Some("cargo")),
        ("npm run dev &", Some("npm")),
        ("cargo test # all of it; really", Some("cargo")),
        ("echo 'a; b' \"c | d\" e\\;f $'g\\'; h'", Some("echo")),
        ("git commit -m \"fix: a (b) & c\"", Some("git")),
        ("cat <<< \"a; b\"", Some("cat")),
        ("cat > f <<'EOF'\na; b | c\n$(secret\nEOF\n", Some("cat")),
        ("cat <<-EOF\n\ta; b\n\tEOF", Some("cat")),
        ("cat <<A <<\"B\"\nx\nA\ny\nB\n", Some("cat")),
        ("python3 - <<'PY'\nimport os\nPY", Some("python3")),
        ("git commit -m \"$(cat <<'EOF'\nfix: don't (a\n\nEOF\n)\"", Some("git")),
        ("git log -1 $(git rev-parse HEAD)", Some("git")),
        ("diff <(sort a) <(sort b)", Some("diff")),
        ("echo $((1 + 2)) ${A:-b; c} `date; date`", Some("echo")),
        ("cat <<EOF\nnever ends", None),
        ("cat <<EOF\na\nEOF\nls", None),
        ("echo \"never ends", None),
        ("ls\n\n# done\n", Some("ls")),
    ]);
}

#[test]
fn windows_shells_are_read_too() {
    check(&[
        ("& \"C:\\Program Files\\x\\x.exe\" -a", Some("x.exe")),
        ("& 'C:\\Program Files (x86)\\y.exe'", Some("y.exe")),
        ("$env:X=\"a secret\"; npm test", Some("npm")),
        ("$ErrorActionPreference = 'Stop'\nnpm test", Some("npm")),
        ("cd C:\\x; npm test", Some("npm")),
        ("cd /d D:\\x && npm test", Some("npm")),
        ("set A=b&& npm test", Some("npm")),
        ("Set-Location C:\\x; dotnet build", Some("dotnet")),
        (".\\gradlew.bat build\r\n", Some("gradlew.bat")),
        ("C:\\tools\\rg.exe x", Some("rg.exe")),
        ("C:\\Users\\Some Body\\x.exe", None),
        ("cd \"C:\\x\\\"; $env:A=\"b secret\"; npm", None),
        ("$x = get secret; npm", None),
        ("$x = \"a`\" secret\"; npm", None),
        ("set A='b\"c' && secret \" && ls", None),
        ("\"a printed secret\"", None),
        ("cd x^\n && secret", None),
        ("cd @'\n'; secret\n'@; npm", None),
        ("if exist x npm", None),
        ("cd \u{201c}a; secret b\u{201d}", None),
        ("$env:A = 'a\u{2019}; secret 'b'", None),
        ("$x = a> secret; npm", None),
        ("cd 'a\\' && secret '", None),
    ]);
}

#[test]
fn words_that_look_like_secrets_are_not_names() {
    for secret in [
        "ghp_abcdefabcdef",
        "github_pat_x",
        "sk-ant-api03-x",
        "AKIAIOSFODNNEXAMPLE",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "550e8400-e29b-41d4-a716-446655440000",
        "d41d8cd98f00b204e9800998ecf8427e",
        "JBSWY3DPEHPK3PXP",
        "aB3dE5fG7hJ9",
        "qwertzuiopasdfghjklyxcvbnm",
        "1234567890",
        "10.0.0.1",
        "https://user:pass@host/x",
        "user@host",
        "s\u{00e9}same",
        "$TOKEN",
        "${TOKEN}",
        "*",
    ] {
        assert_eq!(executable(secret), None, "{secret}");
        assert_eq!(executable(&format!("cd x && A=b {secret} -v")), None, "{secret}");
    }
    assert_eq!(executable(&"x".repeat(65)), None);
}

/// Commands from public transcripts and reports of agents, with changed paths and names.
#[test]
fn commands_that_agents_run() {
    check(&[
        (
            "cd /data/x/source && TOOL_BINARY=/data/out/art/18a812494e93914b/tool make test 2>&1",
            Some("make"),
        ),
        ("AWS_PROFILE=my-profile aws s3 ls", Some("aws")),
        ("PYTHONPATH=. python -m pytest tests/test_a.py -x -q 2>&1 | tail -20", None),
        ("B=http://localhost:8080/api/v1; curl $B/health; curl $B/accounts", None),
        ("B=http://localhost:8080/api/v1; curl -s $B/health", Some("curl")),
        (
            "cd /path/to/project\necho \"=== checking ===\"\ngrep -rn \"pattern\" crates/\ncargo test -p x",
            None,
        ),
        ("# look at the names\njq -r '.[] | .name' f.json", Some("jq")),
        ("git add a b && git commit -m \"$(cat <<'EOF'\nrefactor: rename\nEOF\n)\"", None),
        (
            "git commit -m \"$(cat <<'EOF'\nfix(x): the `plan` (new)\n\nCo-Authored-By: A <a@b.example>\nEOF\n)\"",
            Some("git"),
        ),
        ("bash -c 'cat | pbcopy' << 'EOF'\nSome content\nEOF", Some("bash")),
        (
            "AGENT=$(command -v agent 2>/dev/null)\ntest -x \"$AGENT\" || AGENT=\"$HOME/.local/bin/agent\"",
            None,
        ),
        ("curl https://x.example/install -fsS | bash", None),
        ("irm 'https://x.example/install?win32=true' | iex", None),
        ("export API_KEY=some_key_here", Some("export")),
        ("agent --api-key some_key_here \"prompt\"", Some("agent")),
        ("source ~/.nvm/nvm.sh && nvm use 20 && npm ci", None),
        ("source ~/.venv/bin/activate; python manage.py migrate", Some("python")),
        ("cd /testbed && python -m pytest -rA tests/a.py", Some("python")),
        (
            "find . -name '*.ts' -not -path './node_modules/*' -exec grep -l 'a' {} \\;",
            Some("find"),
        ),
        ("sed -i 's/a;b/c|d/g' src/x.ts", Some("sed")),
        ("sed -n '1,40p' src/x.ts", Some("sed")),
        ("docker compose exec -T db psql -U u -c \"SELECT 1;\"", Some("docker")),
        (
            "docker run --rm -e TOKEN=abc -v \"$PWD\":/w image sh -c 'make && make test'",
            Some("docker"),
        ),
        ("PGPASSWORD='p w' psql -h h -U u -d d -c 'select 1; select 2'", Some("psql")),
        ("GIT_SSH_COMMAND=\"ssh -i ~/.ssh/k -o StrictHostKeyChecking=no\" git push", Some("git")),
        ("NODE_OPTIONS=\"--max-old-space-size=4096 --inspect\" npx tsc --noEmit", Some("npx")),
        ("kubectl get pods -n x -o jsonpath='{.items[*].metadata.name}'", Some("kubectl")),
        (
            "gh pr create --title \"a\" --body \"$(cat <<'EOF'\n## Summary\n- it's (done)\nEOF\n)\"",
            Some("gh"),
        ),
        ("gh api repos/a/b --jq '.name | length'", Some("gh")),
        ("awk '{print $1; print $2}' f", Some("awk")),
        ("node -e \"console.log(require('./p.json').version)\"", Some("node")),
        ("python3 -c 'import sys; print(sys.version)'", Some("python3")),
        ("mkdir -p a/{b,c}/d", Some("mkdir")),
        ("export PATH=\"$HOME/.bun/bin:$PATH\" && bun test", Some("bun")),
        ("eval \"$(fnm env)\" && npm test", None),
        ("echo \"$PASSWORD\" | sudo -S apt-get update", None),
        ("while ! nc -z localhost 5432; do sleep 1; done", None),
        ("rm -rf dist && npm run build", None),
        ("(cd web && npm test)", None),
        ("test -f .env || cp .env.example .env", None),
        ("cd \"C:\\Users\\me\\my app\"; npm run build", Some("npm")),
        ("Get-ChildItem -Path src -Recurse | Select-String 'a'", None),
        ("$env:NODE_ENV=\"test\"; npx vitest run", Some("npx")),
        ("cmd /c \"npm run build\"", Some("cmd")),
        ("xargs -n1 rm < list.txt", Some("xargs")),
        ("uv run --with 'a>=1' pytest", Some("uv")),
        ("sudo -S -p '' id", Some("sudo")),
        ("DOCKER_BUILDKIT=1 docker build -t x . --build-arg TOKEN=$TOKEN", Some("docker")),
    ]);
}

/// A word that must not be shown, although it looks like a program.
const PLANTED: &str = "planted";

/// Places where a word is not a program, in commands whose program, if any, is `cmd`.
fn places() -> impl Strategy<Value = String> {
    let quoted = prop_oneof![
        Just("planted".to_owned()),
        Just("\"a planted\"".to_owned()),
        Just("'a planted'".to_owned()),
        Just("$'a\\'planted'".to_owned()),
        Just("$\"a planted\"".to_owned()),
        Just("a\\ planted".to_owned()),
        Just("\"a\\\" planted\"".to_owned()),
        Just("\"$(a planted)\"".to_owned()),
        Just("\"$(a \"b; planted\")\"".to_owned()),
        Just("$(a 'b) planted')".to_owned()),
        Just("$(case a in a) planted;; esac)".to_owned()),
        Just("${A:-b planted}".to_owned()),
        Just("\"${A:-\"b planted\"}\"".to_owned()),
        Just("`a planted`".to_owned()),
        Just("$((1 + planted))".to_owned()),
        Just("{a,planted}".to_owned()),
        Just("~/planted".to_owned()),
        Just("*/planted".to_owned()),
        Just("https://a:planted@b/planted".to_owned()),
        Just("'{\"a\": \"planted\"}'".to_owned()),
    ];
    let value = proptest::collection::vec(quoted, 1..3).prop_map(|parts| parts.concat());
    (0..18_u8, value).prop_map(|(form, value)| match form {
        0 | 1 => format!("A={value} "),
        2 => format!("A={value}; "),
        3 => format!("export A={value} && "),
        4 => format!("cd {value} && "),
        5 => format!("cd {value}\n"),
        6 => "# a planted; planted\n".to_owned(),
        7 => format!("env -u {value} A={value} "),
        8 => format!("sudo -u {value} "),
        9 => format!("set -- {value}; "),
        10 => format!("A={value} \\\n  "),
        11 => format!("$env:A={value}; "),
        13 => format!("A=b> {value} "),
        14 => format!("env A=b 2> {value} "),
        15 => format!("> {value} "),
        16 => format!("sudo < {value} "),
        12 => format!("source {value} > {value} && "),
        _ => format!("timeout -k {value} 5 "),
    })
}

proptest! {
    #[test]
    fn no_word_of_an_assignment_or_argument_is_named(
        before in proptest::collection::vec(places(), 0..4),
        after in proptest::collection::vec(places(), 0..4),
        document in any::<bool>(),
    ) {
        let before = before.concat();
        let after = after.concat();
        let document = if document { "<<E\nplanted; planted\nE\n" } else { "" };
        let command = format!("{before}cmd -x {after} > planted {document}");
        let name = executable(&command);
        prop_assert!(name.is_none_or(|name| !name.contains(PLANTED)), "{command}: {name:?}");
        // A command cut at any place shows no other word.
        for (at, _) in command.char_indices() {
            let name = executable(&command[..at]);
            prop_assert!(name.is_none_or(|name| !name.starts_with("pla")), "{}", &command[..at]);
        }
    }

    #[test]
    fn any_text_gives_a_safe_name_or_none(
        pieces in proptest::collection::vec(prop_oneof![
            Just("'"), Just("\""), Just("\\"), Just("$("), Just(")"), Just("`"), Just("${"), Just("}"), Just("<<E"),
            Just("\n"), Just(" "), Just(";"), Just("&"), Just("|"), Just("="), Just("A="), Just("cd "), Just("env "),
            Just("\u{e9}"), Just("#"), Just("$'"), Just("E"), Just("\r\n"), Just("& "), Just("C:\\"), Just("("),
        ], 0..40),
        noise in any::<String>(),
    ) {
        for command in [pieces.concat(), noise.clone(), format!("{}{noise}", pieces.concat())] {
            if let Some(name) = executable(&command) {
                prop_assert!(command.contains(name));
                prop_assert!(name.len() <= 64);
                prop_assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._+-".contains(&b)));
            }
        }
    }
}

/// Each text is 1 MiB long. Reading any part of it once per byte would take hours.
#[test]
fn hostile_text_is_read_in_linear_time() {
    let long = |unit: &str| unit.repeat((1 << 20) / unit.len());
    for unit in [
        "a",
        "'",
        "\"",
        "\\",
        "$(",
        "(",
        ")",
        "`",
        "${",
        "<<E ",
        "<<E\n",
        "\n",
        "cd x;",
        "A=b ",
        "sudo ",
        "#",
        "# \n",
        "$'",
        "\\\n",
        "a/",
        "env A='b' ",
        "\"$(",
        "time -f ",
        "&",
        "$env:A=b;",
        "\u{e9}",
        "; ",
    ] {
        let text = long(unit);
        for command in
            [text.clone(), format!("cd x && {text}"), format!("cmd {text}"), format!("A=\"{text}")]
        {
            if let Some(name) = executable(&command) {
                assert!(name.len() <= 64);
            }
        }
    }
}
