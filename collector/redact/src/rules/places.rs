//! Places where a secret stands, no matter what the secret looks like.

use super::{Check, Rule};

/// Names whose value is a secret.
macro_rules! names {
    () => {
        concat!(
            "(?:passw(?:or)?d|passphrase|passwort|pwd|secrets?|token|credentials|pass|pat",
            "|(?:api|access|private|secret|auth|encryption|encrypt|signing|sign|master|license|account|subscription|admin",
            "|service|deploy|app|application|jwt|hmac|session|cookie|client|shared|storage|webhook)[_-]?key)"
        )
    };
}

/// What may follow such a name without changing its meaning: `TOKEN_PROD` holds a token, `TOKEN_FILE` does not.
macro_rules! endings {
    () => {
        concat!(
            "(?:[_-]?(?:key_base|base|value|val|string|str|text|plain|raw|prod(?:uction)?|dev|test|staging|stage|live|main",
            "|old|new|current|previous|primary|secondary|default|local|ci|v?[0-9]{1,3}))?"
        )
    };
}

/// A value in quotes, or up to a character that ends a word in code.
macro_rules! value {
    () => {
        r#"(?:[bfru]{0,2}"([^"\r\n]{3,})|[bfru]{0,2}'([^'\r\n]{3,})|`([^`\r\n]{3,})|([^\s"'`,;&<>(){}\[\]|]{4,}))"#
    };
}

/// A word of a command, in quotes or not.
macro_rules! word {
    () => {
        r#"(?:"([^"\r\n]{3,})|'([^'\r\n]{3,})|([^\s"'`|;<>]{3,}))"#
    };
}

const NAMES: &[&str] = &[
    "passw",
    "passphrase",
    "pwd",
    "secret",
    "token",
    "credential",
    "pass=",
    "pass:",
    "pass\"",
    "pass'",
    "pass ",
    "_pat",
    "api_key",
    "apikey",
    "api-key",
    "_key",
    "-key",
    "accesskey",
    "privatekey",
    "authkey",
    "encryptionkey",
    "signingkey",
    "masterkey",
    "licensekey",
    "accountkey",
    "subscriptionkey",
    "appkey",
    "sessionkey",
    "clientkey",
    "sharedkey",
    "storagekey",
    "webhookkey",
    "servicekey",
    "deploykey",
    "adminkey",
];

const fn place(
    name: &'static str,
    about: &'static str,
    keywords: &'static [&'static str],
    check: Check,
    pattern: &'static str,
) -> Rule {
    Rule { name, about, keywords, pattern, check, before: 80, after: 320, source: "" }
}

/// A command with a password among its arguments.
const fn command(
    name: &'static str,
    about: &'static str,
    keywords: &'static [&'static str],
    pattern: &'static str,
) -> Rule {
    Rule {
        name,
        about,
        keywords,
        pattern,
        check: Check::Password,
        before: 8,
        after: 1_024,
        source: "",
    }
}

pub(crate) const PLACES: &[Rule] = &[
    place(
        "environment",
        "Value of an environment variable with a telling name",
        NAMES,
        Check::Value,
        concat!(
            r"(?:^|[\s;&|+'\x22`-])[A-Z][A-Z0-9_]{0,60}?(?:PASSW(?:OR)?D|PASSPHRASE|PWD|SECRETS?|TOKEN|CREDENTIALS?|PASS|PAT|KEY)",
            r"(?:_(?:KEY_BASE|BASE|VALUE|PROD|DEV|TEST|STAGING|LIVE|MAIN|OLD|NEW|[0-9]{1,3}))?",
            r#"=(?:"([^"\r\n]{3,})|'([^'\r\n]{3,})|([^\s"'`]{4,}))"#
        ),
    ),
    place(
        "assignment",
        "Value of a variable, key or field with a telling name",
        NAMES,
        Check::Value,
        concat!(
            r"(?i)(?:^|[^a-z0-9:]|[^0-9]:)[a-z0-9_.-]{0,60}?",
            names!(),
            endings!(),
            r#"["'\]]{0,2}\s{0,8}(?:=>|:=|\?=|=|:)\s{0,8}"#,
            value!()
        ),
    ),
    place(
        "named-value",
        "Value of a pair `name`, `value` with a telling name",
        NAMES,
        Check::Value,
        concat!(
            r#"(?i)(?:name|key)["']?\s{0,4}[:=]\s{0,4}["']?[a-z0-9_.-]{0,60}?"#,
            names!(),
            endings!(),
            r#"["']?\s{0,4},?[\s+-]{0,20}["']?value["']?\s{0,4}[:=]\s{0,4}"#,
            value!()
        ),
    ),
    place(
        "call",
        "Argument of a call with a telling name",
        NAMES,
        Check::Value,
        concat!(
            r"(?i)[a-z0-9_.]{0,60}?",
            names!(),
            r#"\(\s{0,4}(?:"([^"\r\n]{4,})|'([^'\r\n]{4,}))"#
        ),
    ),
    place(
        "argument-pair",
        "Value behind a telling name in a list of arguments",
        NAMES,
        Check::Argument,
        concat!(
            r#"(?i)["'][a-z0-9_.-]{0,60}?"#,
            names!(),
            r#"["']\s{0,4},\s{0,4}(?:"([^"\r\n]{6,})|'([^'\r\n]{6,}))"#
        ),
    ),
    place(
        "element",
        "Text of an XML element with a telling name",
        NAMES,
        Check::Value,
        concat!(
            r#"(?i)<[a-z0-9:_. ="'-]{0,60}"#,
            names!(),
            r#"["']?(?:\s[^<>]{0,80})?>([^<\s]{4,})</"#
        ),
    ),
    place(
        "flag-password",
        "Value of a flag for a password",
        &["pass", "pwd"],
        Check::Password,
        concat!(
            r#"(?i)(?:^|[\s"'`=\[,(])--?(?:[a-z0-9]{1,20}[_-]){0,3}?(?:password|passwd|pass|pwd|passphrase|storepass|keypass)"#,
            r#"(?:=|\s{1,4}|["'],\s{0,20})"#,
            word!()
        ),
    ),
    place(
        "flag",
        "Value of a flag with a telling name",
        &["token", "secret", "-pat", "-key", "apikey", "accesskey"],
        Check::Argument,
        concat!(
            r#"(?i)(?:^|[\s"'`=\[,(])--?(?:[a-z0-9]{1,20}[_-]){0,3}?(?:token|secret|pat|[a-z0-9]{1,20}-?key)"#,
            r#"(?:=|\s{1,4}|["'],\s{0,20})"#,
            word!()
        ),
    ),
    place(
        "sentence",
        "Secret that a sentence tells",
        NAMES,
        Check::Argument,
        r#"(?i)\b(?:password|passwd|pwd|passphrase|passcode|secret|token|api[ _-]?key|passwort)\s{1,3}(?:is|was|ist|to)\s{0,2}:?\s{0,2}["'`]?([^\s"'`,]{5,})"#,
    ),
    place(
        "url-password",
        "Password in a URL",
        &["://"],
        Check::Password,
        r#"(?i)\b[a-z][a-z0-9+.-]{0,30}://[^\s/:@"'<>`]{0,128}:([^\s"'/<>`]{3,})@[a-z0-9\[_$%{*.-]"#,
    ),
    Rule {
        name: "url-user",
        about: "Token as the user of a URL",
        keywords: &["://"],
        pattern: r"(?i)\b[a-z][a-z0-9+.-]{0,30}://([a-z0-9_-]{20,})@[a-z0-9]",
        check: Check::Random(320),
        before: 32,
        after: 300,
        source: "",
    },
    place(
        "query",
        "Secret in the query of a URL",
        &[
            "token=",
            "key=",
            "sig=",
            "signature=",
            "secret=",
            "password=",
            "passwd=",
            "pwd=",
            "auth=",
            "credential=",
            "jwt=",
        ],
        Check::Argument,
        r#"(?i)[?&;](?:[a-z0-9_.-]{0,30}(?:token|secret|password|passwd|pwd|jwt)|(?:api|access|auth|subscription|private)?[_-]?key|sig|auth|(?:x-amz-|x-goog-)?(?:signature|credential))=([^\s&#"'<>`;]{5,})"#,
    ),
    place(
        "authorization",
        "Credentials of an Authorization header",
        &["authorization"],
        Check::Argument,
        r#"(?i)\b(?:proxy-)?authorization["'\]]{0,2}\s{0,4}[:=,]\s{0,4}[bfru]?["'`]?\s{0,2}(?:(?:basic|bearer|token|apikey|api-key|key|negotiate|splunk|sso-key|bot|genie ?key|aws4-hmac-sha256[^\r\n"']{0,300}?signature)[\s=]{1,3})?(?:token=)?["']?([^\s"'`,]{6,})"#,
    ),
    Rule {
        name: "bearer",
        about: "Bearer token",
        keywords: &["bearer"],
        pattern: r"(?i)\bbearer[\s=:]{1,3}([A-Za-z0-9._~+/=-]{16,})",
        check: Check::Random(310),
        before: 8,
        after: 400,
        source: "RFC 6750",
    },
    place(
        "cookie",
        "Cookies of a header or a command",
        &["cookie"],
        Check::Form,
        r#"(?i)(?:\b(?:set-)?cookie["']?\s{0,3}[:,]\s{0,3}["']?|--cookie[ =]["']?)([a-z0-9_.%-]{1,64}=[^\s"';=$<{]{6,}[^\r\n"']*)"#,
    ),
    command(
        "curl-user",
        "Password of `curl -u`",
        &["curl", "httpie", "wget"],
        r#"\b(?:curl|httpie|wget)\b(?:[^\r\n]|\\\r?\n)*?\s(?:-u|-U|--user|--proxy-user|-a|--auth)[ =]?\s{0,2}["']?[^\s:"'$/]{1,80}:([^\s"'`]{3,})"#,
    ),
    command(
        "curl-cookie",
        "Cookie of `curl -b`",
        &["curl"],
        r#"\bcurl\b(?:[^\r\n]|\\\r?\n)*?\s-b\s{0,2}["']?([a-zA-Z0-9_.%-]{1,64}=[^\s"';$]{6,}[^\r\n"']*)"#,
    ),
    command(
        "mysql-password",
        "Password of a MySQL client",
        &["mysql", "mariadb"],
        r#"\b(?:mysql|mariadb)[a-z-]{0,12}\b[^\r\n|;]*?\s-p(?:"([^"\r\n]{3,})|'([^'\r\n]{3,})|([^\s"'|;-][^\s"'`|;]{2,}))"#,
    ),
    command(
        "command-password",
        "Password behind a short flag",
        &[
            "sshpass",
            "redis-cli",
            "mongo",
            "sqlcmd",
            "ldap",
            "docker",
            "podman",
            "az login",
            "unzip",
            "zip",
            "keytool",
            "cypher-shell",
            "rabbitmq",
            "helm",
            "skopeo",
            "htpasswd",
        ],
        concat!(
            r#"\b(?:sshpass\s{1,4}-p|redis-cli\b[^\r\n|;]*?\s(?:-a|--pass)\s|mongo[a-z]{0,8}\b[^\r\n|;]*?\s-p\s|sqlcmd\b[^\r\n|;]*?\s-P\s?|cypher-shell\b[^\r\n|;]*?\s-p\s"#,
            r#"|ldap[a-z]{3,8}\b[^\r\n|;]*?\s-w\s|(?:docker|podman|helm|skopeo|az)\b[^\r\n|;]*?\blogin\b[^\r\n|;]*?\s-p[ =]|(?:un)?zip\b[^\r\n|;]*?\s-P\s|keytool\b[^\r\n|;]*?\s-(?:store|key)pass\s"#,
            r#"|htpasswd\s{1,4}-[a-zA-Z]{0,6}b[a-zA-Z]{0,6}\s{1,4}\S{1,80}\s{1,4}\S{1,80}\s)\s{0,4}"#,
            word!()
        ),
    ),
    command(
        "openssl-password",
        "Password of OpenSSL",
        &["pass:"],
        r#"\s-(?:passin|passout|pass|k)\s{1,4}["']?pass:([^\s"']{3,})"#,
    ),
    Rule {
        name: "piped-password",
        about: "Password piped to a command",
        keywords: &["sudo -s", "password-stdin", "chpasswd", "--passphrase-fd"],
        pattern: r#"\b(?:echo|printf)\s{1,4}(?:-[ne]{1,2}\s{1,4})?(?:"(?:%s\\n" )?["']?([^"'\r\n|]{3,})["']?|'([^'\r\n|]{3,})'|([^\s"'|]{3,}))\s{0,4}\|\s{0,4}[^\r\n|]*?(?:sudo -S|--password-stdin|chpasswd|--passphrase-fd)"#,
        check: Check::Password,
        before: 200,
        after: 8,
        source: "",
    },
    place(
        "sql-password",
        "Password in SQL",
        &["identified", "password"],
        Check::Password,
        r"(?i)\b(?:identified\s{1,4}(?:with\s{1,4}\S{1,40}\s{1,4})?by|password(?:\s{0,4}=)?)\s{1,4}(?:password\s{1,4})?'([^'\r\n]{3,})'",
    ),
    place(
        "connection-string",
        "Password of a connection string",
        &["pwd", "password"],
        Check::Password,
        r#"(?i);\s{0,4}(?:pwd|password)\s{0,2}=\s{0,2}["']?([^;"'\s]{3,})"#,
    ),
    place(
        "connection-head",
        "Password at the head of a connection string",
        &["pwd", "password"],
        Check::Password,
        r#"(?i)(?:^|[\s"'])(?:pwd|password)\s{0,2}=\s{0,2}([^;"'\s]{3,});\s{0,4}[a-z][a-z ]{1,24}="#,
    ),
    place(
        "dsn",
        "Password of a key and value connection string",
        &["password="],
        Check::Password,
        r#"(?i)\b(?:host|user|dbname|port)=\S{1,80}(?:\s{1,3}[a-z_]{2,24}=\S{1,80}){0,6}?\s{1,3}password=["']?([^\s"']{3,})"#,
    ),
    place(
        "netrc",
        "Password of a netrc entry",
        &["login"],
        Check::Password,
        r"\blogin\s{1,8}\S{1,120}\s{1,8}password\s{1,8}([^\s\x22'\\]{3,})",
    ),
    place(
        "pgpass",
        "Line of a .pgpass file",
        &[":5432:", ":5433:", ":6432:", ":*:"],
        Check::Password,
        r"(?m)(?:^|[\s\x22'+])[A-Za-z0-9.*_-]{1,100}:(?:[0-9]{2,5}|\*):[^:\s]{1,64}:[^:\s]{1,64}:([^\s:\x22']{4,})",
    ),
    Rule {
        name: "registry-auth",
        about: "Encoded credentials of a registry",
        keywords: &["\"auth\"", "_auth", ":_password"],
        pattern: r#"(?:"auth"\s{0,4}:\s{0,4}"|_auth\s{0,4}=\s{0,4}["']?|:_(?:auth|authToken|password)\s{1,3})([A-Za-z0-9+/]{12,}={0,2})"#,
        check: Check::Random(300),
        before: 8,
        after: 300,
        source: "",
    },
    place(
        "secure-string",
        "Plain text of a PowerShell secure string",
        &["securestring"],
        Check::Password,
        r#"(?i)ConvertTo-SecureString\s{1,4}(?:-String\s{1,4})?["']([^"'\r\n]{3,})"#,
    ),
    place(
        "password-hash",
        "Hash of a password",
        &["$2a$", "$2b$", "$2y$", "$5$", "$6$", "$y$", "$argon2"],
        Check::Form,
        r"(\$(?:2[aby]\$[0-9]{2}\$[./A-Za-z0-9]{53}|[56]\$(?:rounds=[0-9]{1,9}\$)?[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{43,86}|y\$[./A-Za-z0-9]{1,8}\$[./A-Za-z0-9]{1,64}\$[./A-Za-z0-9]{43}|argon2(?:id|i|d)\$[A-Za-z0-9=,$+/]{40,200}))",
    ),
];
