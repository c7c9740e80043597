//! Embeds the files that browsers load, both as they are and compressed. The files are not changed.
//!
//! Compressed with gzip only, which every browser accepts. Over plain http from loopback addresses, browsers accept
//! Brotli and Zstandard at best sometimes, and these save little over the loopback interface.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::{env, fs};

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("web");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let mut files = Vec::new();
    for folder in ["app", "vendor"] {
        println!("cargo::rerun-if-changed={}", root.join(folder).display());
        collect(&root.join(folder), &mut files)?;
    }
    files.sort();
    let mut all = Sha256::new();
    let mut table = String::from("pub(crate) static ASSETS: &[Asset] = &[\n");
    for (number, file) in files.iter().enumerate() {
        let path = file.strip_prefix(&root).unwrap_or(file).to_string_lossy().replace('\\', "/");
        let bytes = fs::read(file)?;
        all.update(&path);
        all.update(&bytes);
        let packed = out.join(format!("{number}.gz"));
        fs::write(&packed, gzip(&bytes)?)?;
        let hash = hex(&Sha256::digest(&bytes));
        table += &format!(
            "Asset {{ path: {path:?}, hash: {hash:?}, plain: include_bytes!({file:?}), gzip: include_bytes!({packed:?}) }},\n",
        );
    }
    let build = hex(&all.finalize());
    table += &format!("];\npub(crate) const BUILD: &str = {build:?};\n");
    fs::write(out.join("assets.rs"), table)
}

/// Scripts, styles and pictures below a folder. Licences and type declarations are left out, because browsers do not
/// need them.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.to_string_lossy();
        if path.is_dir() {
            collect(&path, files)?;
        } else if [".js", ".css", ".svg"].iter().any(|end| name.ends_with(end)) {
            files.push(path);
        }
    }
    Ok(())
}

fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// The first six bytes of a hash: enough to tell builds and versions of a file apart.
fn hex(hash: &[u8]) -> String {
    hash.iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}
