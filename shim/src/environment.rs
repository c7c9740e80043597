//! Reads the environment variables and the command line, on Linux.

/// The arguments and variables that the program uses. An empty variable counts as unset.
#[derive(Clone, Copy, Debug, Default)]
pub struct Environment<'a> {
    /// `--dir`.
    pub dir: &'a [u8],
    /// The last argument.
    pub argument: &'a [u8],
    /// `HOOKSPAN_DIR`.
    pub hookspan_dir: &'a [u8],
    /// `XDG_STATE_HOME`.
    pub state_home: &'a [u8],
    /// `XDG_RUNTIME_DIR`.
    pub runtime_dir: &'a [u8],
    /// `HOME`.
    pub home: &'a [u8],
    /// `CURSOR_VERSION`.
    pub cursor_version: &'a [u8],
    /// `CURSOR_PROJECT_DIR`.
    pub project_dir: &'a [u8],
    /// `CURSOR_TRANSCRIPT_PATH`.
    pub transcript_path: &'a [u8],
    /// `CURSOR_CODE_REMOTE`.
    pub code_remote: &'a [u8],
    /// `PWD`.
    pub pwd: &'a [u8],
}

impl<'a> Environment<'a> {
    /// Stores one `NAME=value` if the program uses that variable.
    pub fn take(&mut self, variable: &'a [u8]) {
        let place: (&mut &'a [u8], &[u8]) = match variable {
            [b'C', b'U', b'R', b'S', b'O', b'R', b'_', rest @ ..] => match rest {
                [b'V', ..] => (&mut self.cursor_version, b"CURSOR_VERSION="),
                [b'P', ..] => (&mut self.project_dir, b"CURSOR_PROJECT_DIR="),
                [b'T', ..] => (&mut self.transcript_path, b"CURSOR_TRANSCRIPT_PATH="),
                [b'C', ..] => (&mut self.code_remote, b"CURSOR_CODE_REMOTE="),
                _ => return,
            },
            [b'X', b'D', b'G', b'_', b'S', ..] => (&mut self.state_home, b"XDG_STATE_HOME="),
            [b'X', b'D', b'G', b'_', b'R', ..] => (&mut self.runtime_dir, b"XDG_RUNTIME_DIR="),
            [b'H', b'O', b'O', ..] => (&mut self.hookspan_dir, b"HOOKSPAN_DIR="),
            [b'H', b'O', b'M', ..] => (&mut self.home, b"HOME="),
            [b'P', b'W', ..] => (&mut self.pwd, b"PWD="),
            _ => return,
        };
        if let Some(value) = variable.strip_prefix(place.1) {
            *place.0 = value;
        }
    }

    /// The state directory in two parts: a base, and what is appended to it. `None` if neither an argument nor a
    /// variable names a directory.
    pub(crate) fn state_dir(&self) -> Option<(&'a [u8], &'static [u8])> {
        if !self.dir.is_empty() {
            Some((self.dir, b"/"))
        } else if !self.hookspan_dir.is_empty() {
            Some((self.hookspan_dir, b"/"))
        } else if self.state_home.starts_with(b"/") {
            // The XDG specification requires relative paths to be ignored.
            Some((self.state_home, b"/hookspan/"))
        } else if !self.home.is_empty() {
            Some((self.home, BELOW_HOME))
        } else {
            None
        }
    }

    /// Length of the home directory, if the state directory is found below it.
    pub(crate) fn home_bytes(&self) -> usize {
        match self.state_dir() {
            Some((home, BELOW_HOME)) => home.len(),
            _ => 0,
        }
    }
}

/// Where the state directory is below the home directory.
const BELOW_HOME: &[u8] = b"/.local/state/hookspan/";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_names_are_taken() {
        let mut environment = Environment::default();
        for variable in [&b"HOME=/h"[..], b"HOMEPATH=/x", b"PWD=/p", b"PWDX=/x", b"XDG_STATE_HOME"]
        {
            environment.take(variable);
        }
        assert_eq!((environment.home, environment.pwd), (&b"/h"[..], &b"/p"[..]));
        assert_eq!(environment.state_home, b"");
    }

    #[test]
    fn the_state_directory_is_the_first_that_is_named() {
        let mut environment = Environment { home: b"/h", ..Environment::default() };
        assert_eq!(environment.state_dir(), Some((&b"/h"[..], &b"/.local/state/hookspan/"[..])));
        environment.state_home = b"relative";
        assert_eq!(environment.state_dir(), Some((&b"/h"[..], &b"/.local/state/hookspan/"[..])));
        assert_eq!(environment.home_bytes(), 2);
        environment.state_home = b"/s";
        assert_eq!(environment.home_bytes(), 0);
        assert_eq!(environment.state_dir(), Some((&b"/s"[..], &b"/hookspan/"[..])));
        environment.hookspan_dir = b"/d";
        assert_eq!(environment.state_dir(), Some((&b"/d"[..], &b"/"[..])));
        environment.dir = b"/flag";
        assert_eq!(environment.state_dir(), Some((&b"/flag"[..], &b"/"[..])));
        assert_eq!(Environment::default().state_dir(), None);
    }
}
