//! What campaigns need of the machine: file systems of their own, tools that break things. What is missing is an `Err` that
//! says so, and the campaign is left out with that reason.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::wait::{SOON, eventually};

/// Flag of the ioctl: stop at once and write nothing more, not even the file system's own log.
const WITHOUT_FLUSH: u32 = 2;
/// `EXT4_IOC_SHUTDOWN`.
const SHUTDOWN: u32 = 0x8004_587d;

/// What the file of a disk is called, before the id of the process that made it.
const IMAGE: &str = "hookspan-disk-";

/// A file for a disk. In memory if there is any: how long a sync takes is the disk's business, and here it is not to be judged.
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

/// Removes the disks of processes that are gone.
pub fn clear_up() {
    for path in left_behind(images(), IMAGE) {
        // Not in use any more: what was mounted from it has been taken away, or a mount holds on to the file itself.
        let _removed = fs::remove_file(path);
    }
}

/// What processes that are gone have left in a folder under this prefix and their id. What another account left is its own
/// business.
#[must_use]
pub fn left_behind(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    if !is_alive("self") {
        // Without /proc all would look gone.
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

/// Whether a process runs. A process that has ended but was not waited for has no program any more.
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

/// Takes away what is mounted below a folder, the deepest first. Whoever still uses it keeps it until it ends.
pub fn unmount_below(folder: &Path) {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    // The fifth field; later ones of the table lie on top of earlier ones. Our folders' names need no escape.
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
        Self::tmpfs_with(at, &format!("size={mebibytes}m"))
    }

    /// The same with other limits: `nr_inodes=N` bounds how many files there are.
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
