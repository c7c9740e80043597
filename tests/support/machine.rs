//! What campaigns need of the machine: file systems of their own, tools that break things. What is missing is an `Err` that
//! says so, and the campaign is left out with that reason.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::wait::{SOON, eventually};

/// Flag of the ioctl: stop at once and write nothing more, not even the file system's own log.
const WITHOUT_FLUSH: u32 = 2;
/// `EXT4_IOC_SHUTDOWN`.
const SHUTDOWN: u32 = 0x8004_587d;

/// Whether a program is there.
///
/// # Errors
/// It is not, in words.
pub fn tool(name: &str) -> Result<(), String> {
    let found = Command::new("sh")
        .args(["-c", &format!("command -v {name}")])
        .stdout(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if found { Ok(()) } else { Err(format!("{name} is not installed")) }
}

/// Whether this process may mount file systems.
///
/// # Errors
/// It may not, in words.
pub fn root() -> Result<(), String> {
    match rustix::process::geteuid().is_root() {
        true => Ok(()),
        false => Err("mounting a file system needs root".to_owned()),
    }
}

/// A file system that is mounted for as long as this lives.
#[derive(Debug)]
pub struct Mounted {
    at: PathBuf,
    image: Option<PathBuf>,
}

impl Mounted {
    /// Memory of a fixed size.
    ///
    /// # Errors
    /// The machine does not permit it.
    pub fn tmpfs(at: &Path, mebibytes: u64) -> Result<Self, String> {
        root()?;
        fs::create_dir_all(at).unwrap();
        run(Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={mebibytes}m,mode=0755"), "tmpfs"])
            .arg(at))?;
        Ok(Self { at: at.to_owned(), image: None })
    }

    /// An ext4 in a file.
    ///
    /// # Errors
    /// The machine does not permit it.
    pub fn ext4(image: &Path, at: &Path, mebibytes: u64) -> Result<Self, String> {
        root()?;
        tool("mkfs.ext4")?;
        fs::create_dir_all(at).unwrap();
        File::create(image).unwrap().set_len(mebibytes << 20).unwrap();
        run(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(image))?;
        let mounted = Self { at: at.to_owned(), image: Some(image.to_owned()) };
        mounted.mount()?;
        Ok(mounted)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.at
    }

    /// Stops the file system as a power cut would: what was not written to the device is gone. Returns the wall clock just
    /// before.
    ///
    /// # Errors
    /// The kernel does not know how, or Perl (which makes the call) is missing.
    pub fn cut_power(&self) -> Result<SystemTime, String> {
        tool("perl")?;
        let script = format!(
            "use Time::HiRes; open(my $d, '<', $ARGV[0]) or die $!; my $f = pack('L', {WITHOUT_FLUSH}); \
             printf('%.6f', Time::HiRes::time()); ioctl($d, {SHUTDOWN}, $f) or die $!;"
        );
        let said = Command::new("perl").arg("-e").arg(script).arg(&self.at).output().unwrap();
        if !said.status.success() {
            return Err(format!(
                "no shutdown ioctl here: {}",
                String::from_utf8_lossy(&said.stderr).trim()
            ));
        }
        let seconds: f64 = String::from_utf8_lossy(&said.stdout).trim().parse().unwrap();
        Ok(UNIX_EPOCH + Duration::from_secs_f64(seconds))
    }

    /// Takes it away and brings it back, as a start of the system does.
    #[track_caller]
    pub fn reboot(&self) {
        self.unmount();
        self.mount().unwrap();
    }

    /// Mounts it again with other options.
    #[track_caller]
    pub fn remount(&self, options: &str) {
        run(Command::new("mount").args(["-o", &format!("remount,{options}")]).arg(&self.at))
            .unwrap();
    }

    /// Writes a file of zeros until nothing more goes in.
    pub fn fill(&self, name: &str) -> PathBuf {
        let path = self.at.join(name);
        let mut file = File::create(&path).unwrap();
        for step in [1 << 20, 4_096, 512] {
            let zeros = vec![0_u8; step];
            while std::io::Write::write_all(&mut file, &zeros).is_ok() {}
        }
        path
    }

    fn mount(&self) -> Result<(), String> {
        let Some(image) = &self.image else { return Ok(()) };
        run(Command::new("mount").args(["-o", "loop"]).arg(image).arg(&self.at))
    }

    #[track_caller]
    fn unmount(&self) {
        eventually("the file system is let go", SOON, || run(Command::new("umount").arg(&self.at)));
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if run(Command::new("umount").arg(&self.at)).is_err() {
            // Whoever still holds it is told by the next use of the folder.
            drop(run(Command::new("umount").arg("-l").arg(&self.at)));
        }
    }
}

fn run(command: &mut Command) -> Result<(), String> {
    let done = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if done.status.success() {
        return Ok(());
    }
    Err(format!("{command:?}: {}", String::from_utf8_lossy(&done.stderr).trim()))
}
