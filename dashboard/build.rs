//! Embeds the files that browsers load, both as they are and compressed. The files are not changed.
//!
//! Each file is compressed twice. Chrome and Firefox accept Brotli over plain HTTP if the address is a loopback address,
//! and Brotli is a sixth smaller than gzip. Every other browser accepts gzip. Zopfli searches for the smallest gzip file.
//! Both take seconds, so the results are kept for the next build.

use std::collections::BTreeSet;
use std::io;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::{env, fs};

use sha2::{Digest, Sha256};

/// Rounds in which Zopfli improves a file. More than 15 rounds save less than 0.1 % of all files together.
const ROUNDS: NonZeroU64 = NonZeroU64::new(15).unwrap();

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("web");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let mut files = Vec::new();
    for folder in ["app", "vendor"] {
        println!("cargo::rerun-if-changed={}", root.join(folder).display());
        collect(&root.join(folder), &mut files)?;
    }
    files.sort();
    let packed = out.join("packed");
    fs::create_dir_all(&packed)?;
    let mut used = BTreeSet::new();
    let mut all = Sha256::new();
    let mut table = String::from("pub(crate) static ASSETS: &[Asset] = &[\n");
    for file in &files {
        let path = file.strip_prefix(&root).unwrap_or(file).to_string_lossy().replace('\\', "/");
        let bytes = fs::read(file)?;
        all.update(&path);
        all.update(&bytes);
        let hash = Sha256::digest(&bytes);
        let hashed = hex(&hash, hash.len());
        let gzip = packed.join(format!("{hashed}-{ROUNDS}.gz"));
        if !gzip.exists() {
            whole(&gzip, &gzipped(&bytes)?)?;
        }
        let brotli = packed.join(format!("{hashed}.br"));
        if !brotli.exists() {
            whole(&brotli, &brotlied(&bytes)?)?;
        }
        let name = short(&hash);
        table += &format!(
            "Asset {{ path: {path:?}, hash: {name:?}, plain: include_bytes!({file:?}), gzip: include_bytes!({gzip:?}), brotli: include_bytes!({brotli:?}) }},\n",
        );
        used.extend([gzip, brotli]);
    }
    for old in fs::read_dir(&packed)? {
        let old = old?.path();
        if !used.contains(&old) {
            fs::remove_file(old)?;
        }
    }
    let build = short(&all.finalize());
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

fn gzipped(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let options = zopfli::Options { iteration_count: ROUNDS, ..zopfli::Options::default() };
    let mut gzip = Vec::new();
    zopfli::compress(options, zopfli::Format::Gzip, bytes, &mut gzip)?;
    Ok(gzip)
}

/// Compressed at the highest level, 11, with a window of 4 MiB, which holds the largest file.
fn brotlied(mut bytes: &[u8]) -> io::Result<Vec<u8>> {
    let parameters =
        brotli::enc::BrotliEncoderParams { quality: 11, lgwin: 22, ..Default::default() };
    let mut packed = Vec::new();
    brotli::BrotliCompress(&mut bytes, &mut packed, &parameters)?;
    Ok(packed)
}

/// Writes a file that gets its name only when it is whole, because the next build trusts it.
fn whole(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let unfinished = file.with_extension("part");
    fs::write(&unfinished, bytes)?;
    fs::rename(unfinished, file)
}

/// The first six bytes of a hash: enough to tell builds and versions of a file apart.
fn short(hash: &[u8]) -> String {
    hex(hash, 6)
}

fn hex(hash: &[u8], bytes: usize) -> String {
    hash.iter().take(bytes).map(|byte| format!("{byte:02x}")).collect()
}
