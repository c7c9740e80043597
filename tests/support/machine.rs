//! What campaigns need on the machine: file systems of their own, and tools that cause faults. If something is missing,
//! the functions return an `Err` that names it, and the campaign is skipped.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::wait::{SOON, eventually};

/// Flag of the ioctl: stop at once and write nothing more, including the file system's own log.
const WITHOUT_FLUSH: u32 = 2;
/// `EXT4_IOC_SHUTDOWN`.
const SHUTDOWN: u32 = 0x8004_587d;

/// Prefix of a disk's file. The id of the process that made it follows.
const IMAGE: &str = "hookspan-disk-";

/// A file for a disk, in memory if possible, because the duration of a sync on a real disk must not affect the test.
///
/// # Errors
/// There is no room for it.
pub fn image() -> Result<tempfile::NamedTempFile, String> {
    let prefix = format!("{IMAGE}{}-", std::process::id());
    let mut image = tempfile::Builder::new();
    image.prefix(&prefix).tempfile_in(images()).map_err(|error| error.to_string())
}

fn images() -> &'static Path {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { memory } else { Path::new("/tmp") }
}

/// Removes the disks of processes that have ended.
pub fn clear_up() {
    for path in left_behind(images(), IMAGE) {
        // The file is no longer used: its file system was unmounted, or a mount keeps the file open.
        let _removed = fs::remove_file(path);
    }
}

/// Files in `folder` that ended processes left behind. The name of such a file is `prefix`, the id of its process, and
/// a dash. Files of other accounts are not returned.
#[must_use]
pub fn left_behind(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    if !is_alive("self") {
        // Without /proc, all processes would seem to have ended.
        return Vec::new();
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let left = entries.filter(|entry| {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(prefix)?.split_once('-'));
        owner.is_some_and(|(pid, _)| !is_alive(pid)) && is_ours(&entry.path())
    });
    left.map(|entry| entry.path()).collect()
}

/// Whether a process runs. A process that has ended and was not waited for has no program any more.
#[must_use]
pub fn is_alive(pid: &str) -> bool {
    match fs::read_link(Path::new("/proc").join(pid).join("exe")) {
        Ok(_) => true,
        Err(error) => error.kind() != ErrorKind::NotFound,
    }
}

fn is_ours(path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let own = rustix::process::geteuid().as_raw();
        fs::symlink_metadata(path).is_ok_and(|found| found.uid() == own && !found.is_symlink())
    }
    #[cfg(not(unix))]
    {
        path.exists()
    }
}

/// Unmounts everything below a folder, the deepest first. Programs that still use a file system keep it until they end.
pub fn unmount_below(folder: &Path) {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    // The fifth field is the mount point. Later lines of the table are mounted on top of earlier ones. The names of our
    // folders need no escape.
    let mut points: Vec<_> = table
        .lines()
        .filter_map(|line| line.split(' ').nth(4))
        .map(Path::new)
        .filter(|point| point.starts_with(folder))
        .collect();
    points.sort_by_key(|point| std::cmp::Reverse(point.components().count()));
    for point in points {
        let _free = run(Command::new("umount").arg("-l").arg(point));
    }
}

/// Checks that a program is installed.
///
/// # Errors
///
/// Says that it is not.
pub fn tool(name: &str) -> Result<(), String> {
    let found = Command::new("sh")
        .args(["-c", &format!("command -v {name}")])
        .stdout(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if found { Ok(()) } else { Err(format!("{name} is not installed")) }
}

/// Checks that this process may mount file systems.
///
/// # Errors
///
/// Says that it may not.
pub fn root() -> Result<(), String> {
    match rustix::process::geteuid().is_root() {
        true => Ok(()),
        false => Err("mounting a file system needs root".to_owned()),
    }
}

/// A mounted file system. It is unmounted when the value is dropped.
#[derive(Debug)]
pub struct Mounted {
    at: PathBuf,
    image: Option<PathBuf>,
}

impl Mounted {
    /// A file system of a fixed size in memory.
    ///
    /// # Errors
    /// The machine does not permit it.
    pub fn tmpfs(at: &Path, mebibytes: u64) -> Result<Self, String> {
        Self::tmpfs_with(at, &format!("size={mebibytes}m"))
    }

    /// The same with further limits: `nr_inodes=N` limits the number of files.
    ///
    /// # Errors
    /// The machine does not permit it.
    pub fn tmpfs_with(at: &Path, options: &str) -> Result<Self, String> {
        root()?;
        fs::create_dir_all(at).unwrap();
        run(Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("{options},mode=0755"), "tmpfs"])
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

    /// Stops the file system as a power cut would: everything that was not written to the device is lost. Returns the
    /// wall clock just before.
    ///
    /// # Errors
    ///
    /// The kernel does not support this, or Perl (which makes the call) is missing.
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

    /// Unmounts and mounts it again, as a restart of the system does.
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

    /// Writes a file of zeros until the file system is full.
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
            // Programs that still use the folder get an error at their next access.
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
