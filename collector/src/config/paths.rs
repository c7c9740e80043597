//! The folders of hookspan and of Cursor.

use std::path::PathBuf;

use super::Environment;
use crate::dirs::Places;

/// What the environment says about the state directory; see [`crate::dirs::StateDir::resolve`].
#[must_use]
pub(crate) fn places(env: &Environment) -> Places {
    Places {
        hookspan_dir: env.path("HOOKSPAN_DIR"),
        xdg_state_home: env.path("XDG_STATE_HOME"),
        xdg_runtime_dir: env.path("XDG_RUNTIME_DIR"),
        home: env.home().cloned(),
        local_app_data: env.path("LOCALAPPDATA"),
    }
}

/// `$XDG_CONFIG_HOME/hookspan/config.toml` or `~/.config/hookspan/config.toml`; on Windows `%APPDATA%\hookspan\config.toml`.
#[must_use]
pub(crate) fn default_config_file(env: &Environment) -> Option<PathBuf> {
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

/// The policy of this machine. The path does not depend on the environment, which belongs to the user.
#[must_use]
pub(crate) fn policy_file() -> PathBuf {
    PathBuf::from(if cfg!(windows) {
        r"C:\ProgramData\hookspan\policy.toml"
    } else if cfg!(target_os = "macos") {
        "/Library/Application Support/hookspan/policy.toml"
    } else {
        "/etc/hookspan/policy.toml"
    })
}

/// Cursor's folder: `~/Library/Application Support/Cursor`, `$XDG_CONFIG_HOME/Cursor` or `~/.config/Cursor`,
/// `%APPDATA%\Cursor`.
#[must_use]
pub(crate) fn cursor_folder(env: &Environment) -> Option<PathBuf> {
    let base = if cfg!(windows) {
        env.path("APPDATA")?
    } else if cfg!(target_os = "macos") {
        env.home()?.join("Library/Application Support")
    } else {
        match env.path("XDG_CONFIG_HOME").filter(|path| path.is_absolute()) {
            Some(base) => base,
            None => env.home()?.join(".config"),
        }
    };
    Some(base.join("Cursor"))
}

/// Cursor's own database. The file need not exist.
#[must_use]
pub(crate) fn cursor_store(env: &Environment) -> Option<PathBuf> {
    Some(cursor_folder(env)?.join("User").join("globalStorage").join("state.vscdb"))
}
