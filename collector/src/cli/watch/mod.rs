//! `hookspan watch`: shows the running agents, updated in place, until it is interrupted.
//!
//! The command draws below the cursor and moves back over its own lines. It does not change terminal modes, so nothing
//! must be restored after an interruption. It reads no keys, so no library for terminal modes and events is needed.

mod draw;
mod look;

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::Global;
use super::blank::Blank;
use super::output::{Paint, columns, is_terminal, rows};
use crate::clock;
use crate::dirs::Lock;
use crate::store::open;
use draw::frame;
use look::Look;

/// Interval between two queries. A frame is drawn at most this often.
const ASK: Duration = Duration::from_millis(250);
/// A frame is drawn at least this often, because ages grow.
const TICK: Duration = Duration::from_secs(1);

/// Show what each running agent does now, and which of them needs you
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A call that may need approval and runs longer than 95 % of its tool's calls is shown as \"approval likely\": hooks do not \
                  say whether a person is asked. Where standard output is no terminal, one picture is printed.\n\n\
                  Examples:\n  hookspan watch\n  hookspan watch --once\n  hookspan watch --redact"
)]
pub(crate) struct Args {
    /// Print the state once and exit
    #[arg(long)]
    once: bool,
    /// Redact secrets, as in an export
    #[arg(long)]
    redact: bool,
}

/// Runs the command until it is interrupted or nobody reads its output any more.
///
/// # Errors
/// The database cannot be read.
pub(crate) fn run(global: &Global, args: Args) -> anyhow::Result<ExitCode> {
    // If nothing was ever recorded, this fails at once and says what is missing.
    drop(open::reader(&global.state.database())?);
    let paint = Paint::stdout(&global.env);
    let blank = Blank::new(args.redact, &global.state, &global.config()?.redact)?;
    let mut look = Look::new(global, blank);
    let moves = is_terminal() && global.env.var("TERM") != Some("dumb");
    let once = args.once || !moves;
    let mut screen = Screen::default();
    let mut drawn: Option<(Instant, u64)> = None;
    loop {
        let rev = look.rev()?;
        let due = drawn.is_none_or(|(at, seen)| seen != rev || at.elapsed() >= TICK);
        if due {
            let runs = Lock::is_held(&global.state);
            let now = look.now(rev, clock::now(), runs)?;
            let lines = frame(&now, columns(), if once { usize::MAX } else { rows() }, paint);
            if !screen.show(&lines, !once).context("cannot write")? || once {
                return Ok(ExitCode::SUCCESS);
            }
            drawn = Some((clock::instant(), rev));
        }
        std::thread::sleep(ASK);
    }
}

/// The lines that were drawn last, and the terminal's size at that time.
#[derive(Default)]
struct Screen {
    lines: usize,
    size: (usize, usize),
}

impl Screen {
    /// Draws `lines` over the last ones. Returns false if nobody reads the output any more.
    fn show(&mut self, lines: &[String], moves: bool) -> io::Result<bool> {
        let mut out = String::new();
        if moves {
            let size = (columns(), rows());
            if self.size != size && self.lines > 0 {
                // If the terminal's width has changed, the old lines are broken, so the screen is cleared.
                out += "\x1b[2J\x1b[H";
            } else if self.lines > 0 {
                out += &format!("\r\x1b[{}A", self.lines);
            }
            self.size = size;
        }
        for line in lines {
            out += line;
            out += if moves { "\x1b[K\n" } else { "\n" };
        }
        if moves {
            out += "\x1b[J";
        }
        self.lines = lines.len();
        let mut stdout = io::stdout().lock();
        match stdout.write_all(out.as_bytes()).and_then(|()| stdout.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
            written => written.map(|()| true),
        }
    }
}
