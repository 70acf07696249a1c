//! `acp agents install`: installs an agent of the registry in the data folder.
//!
//! A new version is unpacked into a temporary folder, which is renamed when it is complete. One
//! installation of an agent runs at a time, so remains of earlier ones can be removed.

use std::fs::{File, TryLockError};
use std::io::{Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sha2::{Digest as _, Sha256};

use super::archive::{self, Form};
use super::installed::{self, FILES, Manifest};
use super::registry::Archive;
use super::{Agents, Source};
use crate::args::InstallArgs;
use crate::exit::Code;
use crate::folders;
use crate::task::{Failure, Results, say};

/// The prefix of incomplete folders.
const INCOMPLETE: &str = ".incomplete-";

/// Installs an agent and prints the path of its program.
pub(crate) async fn install(args: &InstallArgs, results: &mut Results) -> Result<Code, Failure> {
    let name = &args.name;
    let agents = Agents::read(None).map_err(Failure::usage)?;
    let mut entries = agents.entries.iter();
    let entry = entries.find(|entry| entry.source == Source::Registry && entry.name == *name);
    let Some(entry) = entry else {
        return Err(Failure::usage(format!(
            "the registry has no entry {name:?}. `acp agents update` downloads the entries, and \
             `acp agents --all` lists them"
        )));
    };
    let Some(archive) = entry.archive.clone() else {
        return match &entry.launch {
            Ok(launch) => {
                let program = Path::new(&launch.program).display();
                say(&format!(
                    "{name} needs no installation: {program} downloads it"
                ))
                .await;
                Ok(Code::EndTurn)
            }
            Err(reason) => Err(Failure::failed(format!("cannot install {name}: {reason}"))),
        };
    };
    let version = entry.version.clone().unwrap_or_default();
    let failed =
        |reason: String| Failure::failed(format!("cannot install {name} {version}: {reason}"));
    if !installed::is_version(&version) {
        return Err(failed(
            "its version cannot be the name of a folder".to_owned(),
        ));
    }
    if entry.installed.as_ref() == Some(&version) && !args.again {
        say(&format!(
            "{name} {version} is installed already; --again installs it again"
        ))
        .await;
        return Ok(Code::EndTurn);
    }
    check_order(entry.installed.as_deref(), &version, args).map_err(failed)?;
    if archive.sha256.is_none() && !args.allow_unverified {
        return Err(failed(
            "the registry has no checksum for its archive, so a replaced one cannot be told from it. \
             --allow-unverified installs it all the same"
                .to_owned(),
        ));
    }
    let data =
        folders::data().ok_or_else(|| failed("the system has no folder for data".to_owned()))?;
    let place = Place::prepare(&data.join("agents").join(name)).map_err(failed)?;
    let mut file = match &args.archive {
        Some(path) => File::open(path)
            .map_err(|error| failed(format!("cannot read {}: {error}", path.display())))?,
        None => {
            let file = tempfile::tempfile_in(place.incomplete.path());
            let mut file = file.map_err(|error| failed(error.to_string()))?;
            say(&format!("downloading {}", archive.archive)).await;
            fetch(&archive.archive, &mut file).await.map_err(failed)?;
            file
        }
    };
    let shape = match &args.archive {
        Some(path) => path.to_string_lossy().into_owned(),
        None => archive.archive.clone(),
    };
    // Dropping this future cancels the work.
    let stop = StopOnDrop::default();
    let flag = stop.0.clone();
    let wanted = version.clone();
    let work = tokio::task::spawn_blocking(move || {
        let form = Form::of(&shape)?;
        let sha256 = checksum(&mut file, &flag)?;
        complete(place, file, form, &archive, sha256, wanted, &flag)
    });
    let program = work
        .await
        .map_err(|error| failed(error.to_string()))?
        .map_err(failed)?;
    say(&format!("installed {name} {version}")).await;
    results.line(&program.display().to_string()).await?;
    Ok(Code::EndTurn)
}

/// Rejects a version that is older than the installed one: it may have known defects.
fn check_order(installed: Option<&str>, version: &str, args: &InstallArgs) -> Result<(), String> {
    let Some(installed) = installed.filter(|_| !args.allow_downgrade) else {
        return Ok(());
    };
    let parsed = |text: &str| semver::Version::parse(text.strip_prefix('v').unwrap_or(text)).ok();
    let reason = match (parsed(installed), parsed(version)) {
        (Some(old), Some(new)) if new.cmp_precedence(&old).is_lt() => {
            format!("the newer version {installed} is installed")
        }
        (None, _) | (_, None) if installed != version => {
            format!("the version {installed} is installed, and which one is newer is unknown")
        }
        _ => return Ok(()),
    };
    Err(format!(
        "{reason}. --allow-downgrade replaces it all the same; `acp agents update` may have a newer entry"
    ))
}

#[cfg(feature = "remote")]
async fn fetch(url: &str, file: &mut File) -> Result<(), String> {
    let downloaded = super::download::download(url, file).await;
    downloaded.map_err(|reason| format!("cannot download {url}: {reason}"))
}

/// Rejects a download: this build has no HTTP client.
#[cfg(not(feature = "remote"))]
async fn fetch(url: &str, _: &mut File) -> Result<(), String> {
    Err(format!(
        "this acp was built without its feature `remote`. Download {url}, and run this again with \
         --archive FILE"
    ))
}

/// Sets its flag when it is dropped.
#[derive(Default)]
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The folder of an agent's versions.
struct Place {
    folder: PathBuf,
    incomplete: tempfile::TempDir,
    /// Closing the file unlocks it.
    _lock: File,
}

impl Place {
    /// Locks the folder of an agent for this process.
    fn prepare(folder: &Path) -> Result<Self, String> {
        let unusable = |error: std::io::Error| format!("cannot use {}: {error}", folder.display());
        folders::create(folder).map_err(unusable)?;
        let lock = folders::open_file(&folder.join(".lock")).map_err(unusable)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err("another acp is installing it. Wait for its end".to_owned());
            }
            Err(TryLockError::Error(error)) => return Err(unusable(error)),
        }
        for left in folder.read_dir().map_err(unusable)?.flatten() {
            if left.file_name().to_string_lossy().starts_with(INCOMPLETE) {
                // A failure only leaves unused files.
                let _ = std::fs::remove_dir_all(left.path());
            }
        }
        let incomplete = tempfile::Builder::new()
            .prefix(INCOMPLETE)
            .tempdir_in(folder);
        Ok(Self {
            folder: folder.to_owned(),
            incomplete: incomplete.map_err(unusable)?,
            _lock: lock,
        })
    }
}

/// Returns the SHA-256 of a file, in hexadecimal digits.
fn checksum(file: &mut File, stop: &AtomicBool) -> Result<String, String> {
    use std::io::Read as _;
    let mut hash = Sha256::new();
    let mut piece = vec![0; 1 << 16];
    let unreadable = |error| format!("cannot read the archive: {error}");
    file.seek(SeekFrom::Start(0)).map_err(unreadable)?;
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err("it was stopped".to_owned());
        }
        let length = file.read(&mut piece).map_err(unreadable)?;
        if length == 0 {
            break;
        }
        hash.update(piece.get(..length).unwrap_or_default());
    }
    file.seek(SeekFrom::Start(0)).map_err(unreadable)?;
    Ok(hash
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

/// Verifies and unpacks the archive and renames the folder. Returns the path of the program.
fn complete(
    place: Place,
    file: File,
    form: Form,
    archive: &Archive,
    sha256: String,
    version: String,
    stop: &AtomicBool,
) -> Result<PathBuf, String> {
    if let Some(wanted) = &archive.sha256
        && !wanted.trim().eq_ignore_ascii_case(&sha256)
    {
        return Err(format!(
            "the archive is not the one that the registry describes: expected the SHA-256 {wanted}, got \
             {sha256}. `acp agents update` may have a newer entry"
        ));
    }
    let folder = place.incomplete.path();
    let files = folder.join(FILES);
    std::fs::create_dir(&files).map_err(|error| error.to_string())?;
    archive::unpack(file, form, &files, Path::new(&archive.cmd), stop)?;
    let program = installed::program(&files, &archive.cmd)?;
    if !program.is_file() {
        return Err(format!(
            "its program {:?} is not in the archive",
            archive.cmd
        ));
    }
    let failed =
        |error: std::io::Error| format!("cannot write to {}: {error}", place.folder.display());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let permissions = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&program, permissions).map_err(failed)?;
    }
    let manifest = Manifest {
        version: version.clone(),
        archive: archive.archive.clone(),
        sha256,
        cmd: archive.cmd.clone(),
        args: archive.args.clone(),
        env: archive.env.clone(),
    };
    manifest.write(folder).map_err(failed)?;
    let target = place.folder.join(&version);
    if target.exists() {
        // A running program continues; files that it opens later are of the new version.
        std::fs::rename(&target, place.folder.join(format!("{INCOMPLETE}old"))).map_err(failed)?;
    }
    let made = place.incomplete.keep();
    std::fs::rename(&made, &target).map_err(failed)?;
    for other in place.folder.read_dir().map_err(failed)?.flatten() {
        let name = other.file_name();
        let name = name.to_string_lossy();
        if name != version && (installed::is_version(&name) || name.starts_with(INCOMPLETE)) {
            // A version that is in use may not be removable. The next installation removes it.
            let _ = std::fs::remove_dir_all(other.path());
        }
    }
    installed::program(&target.join(FILES), &archive.cmd)
}
