//! Files for plugins and scripts: facts, streamed reading, whole-file writing, listing, and the queue
//! of those who want to change a file. Paths are absolute; texts, lines and encodings are the
//! tools' matter. What is not here: permissions, and which paths a tool may touch.
//!
//! What takes microseconds is done in place; what may take longer runs on tokio's blocking pool.

use std::collections::HashMap;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use pliant_sdk::Error;
use pliant_sdk::error::code;
use pliant_sdk::host::{ByteStream, DirEntry, FileKind, FileStat, PollBytes};
use rustix::fs::FallocateFlags;
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf, Take};
use tokio::sync::OwnedMutexGuard;
use tokio::task::spawn_blocking;

/// Size of a chunk of a stream.
const CHUNK_BYTES: usize = 64 * 1024;

/// Most that is read of a file that claims to be empty, as those in `/proc` do.
const PSEUDO_FILE_BYTES: u64 = 16 * 1024 * 1024;

/// Facts about a path, links followed.
///
/// # Errors
/// `not_found`, `io`.
pub fn stat(path: &Path) -> Result<FileStat, Error> {
    let metadata = fs::metadata(path).map_err(|cause| failed("inspect", path, &cause))?;
    let real_path = path
        .canonicalize()
        .map_err(|cause| failed("resolve", path, &cause))?;
    Ok(FileStat {
        kind: kind_of(&metadata),
        size: metadata.len(),
        real_path: real_path.to_string_lossy().into_owned(),
    })
}

/// Streams the bytes of a regular file from `offset` on, up to the size it has now, so that reading
/// a file that grows ends.
///
/// # Errors
/// `not_found`, `io`; reading anything but a regular file may never end and is refused.
pub async fn read(path: &Path, offset: u64) -> Result<ByteStream, Error> {
    let metadata = fs::metadata(path).map_err(|cause| failed("read", path, &cause))?;
    // Before it is opened: opening a named pipe waits for a writer.
    regular_only("read", path, &metadata)?;
    let mut file = File::open(path).map_err(|cause| failed("read", path, &cause))?;
    let left = match metadata.len() {
        0 => PSEUDO_FILE_BYTES,
        size => size.saturating_sub(offset),
    };
    file.seek(SeekFrom::Start(offset))
        .map_err(|cause| failed("read", path, &cause))?;
    if left <= CHUNK_BYTES as u64 {
        let mut bytes = Vec::new();
        let read = file.take(left).read_to_end(&mut bytes);
        read.map_err(|cause| failed("read", path, &cause))?;
        return Ok(ByteStream::from_chunks(vec![bytes]));
    }
    Ok(ByteStream::new(FileChunks {
        file: tokio::fs::File::from_std(file).take(left),
        path: path.to_owned(),
        buffer: vec![0; CHUNK_BYTES],
    }))
}

struct FileChunks {
    file: Take<tokio::fs::File>,
    path: PathBuf,
    buffer: Vec<u8>,
}

impl PollBytes for FileChunks {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Vec<u8>, Error>>> {
        let mut buffer = ReadBuf::new(&mut self.buffer);
        let read = ready!(Pin::new(&mut self.file).poll_read(cx, &mut buffer));
        Poll::Ready(match read {
            Ok(()) if buffer.filled().is_empty() => None,
            Ok(()) => Some(Ok(buffer.filled().to_vec())),
            Err(cause) => Some(Err(failed("read", &self.path, &cause))),
        })
    }
}

/// Replaces the content of a regular file, or makes one; makes parent directories if asked. Once
/// begun it runs to its end, also when the future is dropped.
///
/// # Errors
/// `not_found` for a missing directory, `io`. The sentence says whether the file was changed.
pub async fn write(path: &Path, create_dirs: bool, content: Vec<u8>) -> Result<(), Error> {
    let path = path.to_owned();
    in_background(move || write_now(&path, create_dirs, &content)).await
}

/// Writes in place: a renamed copy would lose the owner, links to the file, access lists and
/// watchers, and could not replace a file that is mounted by itself. What remains is the risk of a
/// half-written file. Room is therefore reserved before the first byte changes, the file is cut
/// only after the new bytes are in it, and a failure in between is told as what it is.
fn write_now(path: &Path, create_dirs: bool, content: &[u8]) -> Result<(), Error> {
    let old = fs::metadata(path).ok();
    if let Some(old) = &old {
        regular_only("write", path, old)?;
    } else if let Some(parent) = path.parent().filter(|_| create_dirs) {
        fs::create_dir_all(parent).map_err(|cause| failed("create", parent, &cause))?;
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(|cause| failed("write", path, &cause))?;
    let remove_new = || {
        // It was made here and holds nothing of worth.
        if old.is_none() {
            drop(fs::remove_file(path));
        }
    };
    reserve(&file, content.len() as u64).map_err(|cause| {
        remove_new();
        failed("make room for", path, &cause)
    })?;
    let written = file
        .write_all(content)
        .and_then(|()| file.set_len(content.len() as u64));
    written.map_err(|cause| {
        remove_new();
        let state = match old {
            None => "It was removed again.",
            Some(_) => "It now holds only a part of the new content; write it again.",
        };
        let mut error = failed("write", path, &cause);
        error.message = format!("{} {state}", error.message);
        error
    })
}

/// Takes the disk space that a file will need, without changing it. Systems that cannot are left to
/// fail later.
fn reserve(file: &File, bytes: u64) -> io::Result<()> {
    if bytes <= file.metadata()?.len() {
        return Ok(());
    }
    match rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, 0, bytes) {
        Err(cause @ (rustix::io::Errno::NOSPC | rustix::io::Errno::DQUOT)) => Err(cause.into()),
        _ => Ok(()),
    }
}

/// The entries of a directory, unsorted.
///
/// # Errors
/// `not_found`, `io`.
pub async fn list(path: &Path) -> Result<Vec<DirEntry>, Error> {
    let path = path.to_owned();
    in_background(move || {
        let entries = fs::read_dir(&path).map_err(|cause| failed("list", &path, &cause))?;
        let describe = |entry: io::Result<fs::DirEntry>| {
            entry
                .map(|entry| dir_entry(&entry))
                .map_err(|cause| failed("list", &path, &cause))
        };
        entries.map(describe).collect()
    })
    .await
}

fn dir_entry(entry: &fs::DirEntry) -> DirEntry {
    let kind = match entry.file_type() {
        Ok(kind) if kind.is_file() => Some(FileKind::File),
        Ok(kind) if kind.is_dir() => Some(FileKind::Directory),
        _ => fs::metadata(entry.path()).ok().as_ref().map(kind_of),
    };
    DirEntry {
        name: entry.file_name().to_string_lossy().into_owned(),
        kind,
    }
}

/// The queues of those who want to change a file, one per real path, first come first served.
#[derive(Clone, Default)]
pub struct FileLocks(Arc<Mutex<HashMap<PathBuf, Queue>>>);

/// The users of one file: who holds it, and who waits.
#[derive(Default)]
struct Queue {
    users: usize,
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl FileLocks {
    /// Waits until nobody else holds this file. The stream's only chunk says that it is held; it is
    /// released when the stream is dropped.
    pub async fn lock(&self, path: &Path) -> ByteStream {
        let place = self.enter(key_of(path));
        let turn = Arc::clone(&place.turn).lock_owned().await;
        ByteStream::new(Held {
            told: false,
            _turn: turn,
            _place: place,
        })
    }

    fn enter(&self, key: PathBuf) -> Place {
        let mut queues = self.queues();
        let queue = queues.entry(key.clone()).or_default();
        queue.users += 1;
        Place {
            locks: self.clone(),
            key,
            turn: Arc::clone(&queue.turn),
        }
    }

    fn queues(&self) -> MutexGuard<'_, HashMap<PathBuf, Queue>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One user of a file. The last one takes the queue away.
struct Place {
    locks: FileLocks,
    key: PathBuf,
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut queues = self.locks.queues();
        if let Some(queue) = queues.get_mut(&self.key) {
            queue.users -= 1;
            if queue.users == 0 {
                queues.remove(&self.key);
            }
        }
    }
}

struct Held {
    told: bool,
    _turn: OwnedMutexGuard<()>,
    _place: Place,
}

impl PollBytes for Held {
    fn poll_next(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Vec<u8>, Error>>> {
        let first = !std::mem::replace(&mut self.told, true);
        Poll::Ready(first.then(|| Ok(b"{}".to_vec())))
    }
}

/// The real path; for what does not exist yet, the real path of the nearest directory that does, so
/// that every spelling of a new file has the key it will have once it exists.
fn key_of(path: &Path) -> PathBuf {
    path.ancestors()
        .find_map(|ancestor| {
            let rest = path.strip_prefix(ancestor).ok()?;
            Some(ancestor.canonicalize().ok()?.join(rest))
        })
        .unwrap_or_else(|| path.to_owned())
}

async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match spawn_blocking(work).await {
        Ok(done) => done,
        Err(cause) => Err(Error::failed(format!(
            "Work on a file ended early: {cause}."
        ))),
    }
}

fn kind_of(metadata: &Metadata) -> FileKind {
    if metadata.is_file() {
        FileKind::File
    } else if metadata.is_dir() {
        FileKind::Directory
    } else {
        FileKind::Other
    }
}

fn regular_only(verb: &str, path: &Path, metadata: &Metadata) -> Result<(), Error> {
    let what = match kind_of(metadata) {
        FileKind::File => return Ok(()),
        FileKind::Directory => "a directory",
        FileKind::Other => "a device, pipe or socket",
    };
    let path = path.display();
    Err(Error::new(
        code::IO,
        format!("Could not {verb} {path}: it is {what}, not a regular file."),
    ))
}

fn failed(verb: &str, path: &Path, cause: &io::Error) -> Error {
    let mut error = Error::from(io::Error::from(cause.kind()));
    error.message = format!("Could not {verb} {}: {cause}.", path.display());
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    use std::time::Duration;

    use tempfile::TempDir;
    use tokio::time::timeout;

    fn folder() -> TempDir {
        tempfile::tempdir().expect("a folder")
    }

    async fn content(path: &Path, offset: u64) -> Vec<u8> {
        let mut stream = read(path, offset).await.expect("opens");
        stream.read_to_end(1 << 30).await.expect("reads")
    }

    #[test]
    fn facts_follow_links() {
        let folder = folder();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "four").expect("written");
        symlink(&file, &link).expect("linked");
        let real_path = file
            .canonicalize()
            .expect("a path")
            .to_string_lossy()
            .into_owned();
        let facts = FileStat {
            kind: FileKind::File,
            size: 4,
            real_path,
        };
        assert_eq!(stat(&link), Ok(facts));
        assert_eq!(
            stat(folder.path()).expect("facts").kind,
            FileKind::Directory
        );
        assert_eq!(
            stat(Path::new("/dev/null")).expect("facts").kind,
            FileKind::Other
        );
        let error = stat(&folder.path().join("no")).expect_err("missing");
        assert!(
            error.is(code::NOT_FOUND) && error.message.contains("/no: "),
            "{error}"
        );
    }

    #[tokio::test]
    async fn files_of_every_size_are_read_from_any_offset() {
        let folder = folder();
        let path = folder.path().join("file");
        for size in [0, 1, CHUNK_BYTES, CHUNK_BYTES + 1, 300_000] {
            let bytes: Vec<u8> = (0..size).map(|i| (i % 251) as u8).collect();
            fs::write(&path, &bytes).expect("written");
            for offset in [0, 1, size / 2, size, size + 9] {
                let expected = bytes.get(offset..).unwrap_or_default();
                assert!(
                    content(&path, offset as u64).await == expected,
                    "{size} from {offset}"
                );
            }
        }
    }

    #[tokio::test]
    async fn reading_a_file_that_grows_ends() {
        let folder = folder();
        let path = folder.path().join("file");
        fs::write(&path, vec![1; 200_000]).expect("written");
        let mut stream = read(&path, 0).await.expect("opens");
        let mut log = OpenOptions::new().append(true).open(&path).expect("opens");
        let mut bytes = 0;
        while let Some(chunk) = stream.next().await {
            bytes += chunk.expect("reads").len();
            log.write_all(&[2; 100_000]).expect("appended");
        }
        assert_eq!(bytes, 200_000);
    }

    #[tokio::test]
    async fn files_that_claim_to_be_empty_are_read() {
        assert!(
            content(Path::new("/proc/self/status"), 0)
                .await
                .starts_with(b"Name:")
        );
    }

    #[tokio::test]
    async fn what_is_not_a_regular_file_is_refused_by_name() {
        let folder = folder();
        for path in [folder.path(), Path::new("/dev/zero")] {
            let errors = [
                read(path, 0).await.expect_err("refused"),
                write(path, false, Vec::new()).await.expect_err("refused"),
            ];
            for error in errors {
                let name = path.display().to_string();
                assert!(
                    error.is(code::IO) && error.message.contains(&name),
                    "{error}"
                );
            }
        }
        let error = read(&folder.path().join("no"), 0)
            .await
            .expect_err("missing");
        assert!(error.is(code::NOT_FOUND), "{error}");
    }

    #[tokio::test]
    async fn writing_keeps_permissions_links_and_the_file_itself() {
        let folder = folder();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "a longer content").expect("written");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o750)).expect("set");
        symlink(&file, &link).expect("linked");
        let inode = fs::metadata(&file).expect("facts").ino();
        for content in ["short", "", "longer than ever before"] {
            write(&link, false, content.into()).await.expect("writes");
            assert_eq!(fs::read_to_string(&file).expect("text"), content);
        }
        let facts = fs::metadata(&file).expect("facts");
        assert_eq!((facts.mode() & 0o777, facts.ino()), (0o750, inode));
        assert!(fs::symlink_metadata(&link).expect("facts").is_symlink());
    }

    #[tokio::test]
    async fn parent_directories_are_made_only_when_asked_for() {
        let folder = folder();
        let path = folder.path().join("a/b/file");
        let error = write(&path, false, b"x".into())
            .await
            .expect_err("no folder");
        assert!(error.is(code::NOT_FOUND), "{error}");
        write(&path, true, b"x".into()).await.expect("writes");
        assert_eq!(fs::read(&path).expect("bytes"), b"x");
    }

    #[tokio::test]
    async fn entries_come_with_their_kinds() {
        let folder = folder();
        fs::write(folder.path().join("file"), "").expect("written");
        fs::create_dir(folder.path().join("folder")).expect("made");
        symlink(folder.path(), folder.path().join("link")).expect("linked");
        symlink("nowhere", folder.path().join("dangling")).expect("linked");
        let mut entries = list(folder.path()).await.expect("lists");
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        let entries: Vec<_> = entries.iter().map(|e| (e.name.as_str(), e.kind)).collect();
        let expected = [
            ("dangling", None),
            ("file", Some(FileKind::File)),
            ("folder", Some(FileKind::Directory)),
            ("link", Some(FileKind::Directory)),
        ];
        assert_eq!(entries, expected);
        assert!(
            list(&folder.path().join("no"))
                .await
                .expect_err("missing")
                .is(code::NOT_FOUND)
        );
    }

    async fn is_held(locks: &FileLocks, path: &Path) -> bool {
        timeout(Duration::from_millis(20), locks.lock(path))
            .await
            .is_err()
    }

    #[tokio::test]
    async fn a_file_is_held_under_every_spelling_until_the_stream_is_dropped() {
        let folder = folder();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        symlink(folder.path(), &link).expect("linked");
        let locks = FileLocks::default();
        for exists in [false, true] {
            let mut held = locks.lock(&file).await;
            assert!(held.next().await.is_some_and(|chunk| chunk.is_ok()));
            assert!(held.next().await.is_none());
            assert!(
                is_held(&locks, &link.join("file")).await,
                "exists: {exists}"
            );
            assert!(!is_held(&locks, &folder.path().join("other")).await);
            drop(held);
            assert!(!is_held(&locks, &link.join("file")).await);
            fs::write(&file, "").expect("written");
        }
        assert!(locks.queues().is_empty(), "nothing is left behind");
    }

    #[tokio::test]
    async fn a_file_is_handed_on_in_the_order_of_asking() {
        let locks = FileLocks::default();
        let path = Path::new("/nowhere/file");
        let order = Arc::new(Mutex::new(Vec::new()));
        let held = locks.lock(path).await;
        let wait = |number| {
            let (locks, order) = (locks.clone(), Arc::clone(&order));
            async move {
                let _held = locks.lock(path).await;
                order.lock().expect("unpoisoned").push(number);
                tokio::task::yield_now().await;
            }
        };
        tokio::join!(wait(1), wait(2), wait(3), async { drop(held) });
        assert_eq!(*order.lock().expect("unpoisoned"), [1, 2, 3]);
    }
}
