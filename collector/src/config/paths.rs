//! Where hookspan's own folders are.

use std::path::PathBuf;

use super::Environment;

/// The state directory that holds without `--dir` and `HOOKSPAN_DIR`: what a hook finds that a desktop-launched Cursor
/// starts without the shell's environment.
///
/// `$XDG_STATE_HOME/hookspan` or `~/.local/state/hookspan`; on macOS `~/Library/Application Support/hookspan`; on Windows
/// `%LOCALAPPDATA%\hookspan`. `None` without a home folder.
#[must_use]
pub fn default_state_dir(env: &Environment) -> Option<PathBuf> {
    if cfg!(windows) {
        return Some(env.path("LOCALAPPDATA")?.join("hookspan"));
    }
    if cfg!(target_os = "macos") {
        return Some(env.home()?.join("Library/Application Support/hookspan"));
    }
    // The specification says to ignore a relative value.
    match env.path("XDG_STATE_HOME").filter(|path| path.is_absolute()) {
        Some(base) => Some(base.join("hookspan")),
        None => Some(env.home()?.join(".local/state/hookspan")),
    }
}

/// `$XDG_CONFIG_HOME/hookspan/config.toml` or `~/.config/hookspan/config.toml`; on Windows `%APPDATA%\hookspan\config.toml`.
#[must_use]
pub fn default_config_file(env: &Environment) -> Option<PathBuf> {
    let base = if cfg!(windows) {
        env.path("APPDATA")?
    } else {
        match env.path("XDG_CONFIG_HOME").filter(|path| path.is_absolute()) {
            Some(base) => base,
            None => env.home()?.join(".config"),
        }
    };
    Some(base.join("hookspan").join("config.toml"))
}
