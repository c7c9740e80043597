//! Measures what a hook costs, compared with the least that any program costs and with the hooks that people use today.
//!
//! Each round runs every program once, in random order and on the same body. The result is the median over the rounds
//! of each ratio. A run is timed from before the spawn (std's `posix_spawn`) to after the wait. `floor` only exits.
//! `drain` reads its input to the end and answers, which is the least that a correct hook does.
//!
//! ```text
//! cargo bench -p hookspan-shim                                     # every size, about a minute
//! cargo bench -p hookspan-shim -- --rounds 2000 --sizes 4096       # one size
//! chrt -r 1 cargo bench -p hookspan-shim -- --sizes 500,4096,65536 # p99 that means something
//! cargo bench -p hookspan-shim -- --with before=/tmp/hookspan-shim # next to another build
//! cargo bench -p hookspan-shim -- --gate                           # exit 1 when a limit is passed three times in a row
//! cargo bench -p hookspan-shim -- --hooks                          # next to the hooks that people use today
//! cargo bench -p hookspan-shim -- --collector                      # in each state the collector may be in
//! cargo bench -p hookspan-shim -- --collector --hookspan PATH      # the same with a collector that is already built
//! ```

#[cfg(target_os = "linux")]
mod collector;
#[cfg(target_os = "linux")]
mod hooks;
#[cfg(target_os = "linux")]
mod measure;
#[cfg(target_os = "linux")]
mod sizes;

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    use std::io::{Write, stderr};
    use std::process::ExitCode;

    match options::read().and_then(|options| options.run()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            let _ = writeln!(stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(target_os = "linux")]
mod options {
    use std::env;
    use std::path::PathBuf;

    use crate::measure::{Folder, Result};
    use crate::{collector, hooks, sizes};

    pub(crate) struct Options {
        pub(crate) rounds: usize,
        pub(crate) sizes: Vec<usize>,
        pub(crate) gate: bool,
        /// Other builds to compare with: name and path.
        pub(crate) with: Vec<(String, PathBuf)>,
        /// Path of an existing collector. Without it, the benchmark builds one.
        hookspan: Option<PathBuf>,
        what: What,
    }

    enum What {
        Sizes,
        Hooks,
        Collector,
    }

    pub(crate) fn read() -> Result<Options> {
        let mut options = Options {
            rounds: 500,
            sizes: vec![500, 4_096, 65_536, 1 << 20],
            gate: false,
            with: Vec::new(),
            hookspan: None,
            what: What::Sizes,
        };
        let mut arguments = env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
            match argument.as_str() {
                "--rounds" => options.rounds = value()?.parse()?,
                "--sizes" => {
                    let parsed: std::result::Result<_, _> =
                        value()?.split(',').map(str::parse).collect();
                    options.sizes = parsed?;
                }
                "--with" => {
                    let value = value()?;
                    let (name, path) = value.split_once('=').ok_or("--with takes NAME=PATH")?;
                    options.with.push((name.to_owned(), path.into()));
                }
                "--hookspan" => options.hookspan = Some(value()?.into()),
                "--gate" => options.gate = true,
                "--hooks" => options.what = What::Hooks,
                "--collector" => options.what = What::Collector,
                // What cargo itself passes on.
                "--bench" => {}
                other => return Err(format!("unknown argument {other}").into()),
            }
        }
        Ok(options)
    }

    impl Options {
        /// Whether every limit was kept.
        pub(crate) fn run(&self) -> Result<bool> {
            let folder = Folder::new()?;
            match self.what {
                What::Sizes => sizes::run(self, &folder),
                What::Hooks => hooks::run(self.rounds, &folder).map(|()| true),
                What::Collector => {
                    collector::run(self.rounds, self.hookspan.as_deref(), &folder).map(|()| true)
                }
            }
        }
    }
}
