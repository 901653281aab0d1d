//! The lease at its border: who gets it, who is told what, and what stays behind.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::mpsc;

use super::*;

const OTHER_PROCESS: &str = "PLIANT_TEST_LEASE";

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn holder_of(refused: Result<Lease, LeaseError>) -> LeaseHolder {
    match refused {
        Err(LeaseError::Held(Some(holder))) => holder,
        other => panic!("{other:?}"),
    }
}

fn kind_of(refused: Result<Lease, LeaseError>) -> io::ErrorKind {
    match refused {
        Err(LeaseError::Io(error)) => error.kind(),
        other => panic!("{other:?}"),
    }
}

/// Names of what lies in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    names.collect()
}

/// A process that does not exist any more.
fn ended() -> LeaseHolder {
    let mut child = Command::new("true").spawn().unwrap();
    let pid = child.id();
    child.wait().unwrap();
    LeaseHolder {
        pid,
        ..this_process()
    }
}

/// Another process that has a lease until its input ends.
struct Owner(Child, BufReader<std::process::ChildStdout>);

impl Owner {
    fn of(session: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "tree::lease::tests::another_process",
                "--nocapture",
            ])
            .env(OTHER_PROCESS, session)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut owner = Self(child, stdout);
        owner.line("held");
        owner
    }

    /// The rest of the next line that begins with this word.
    fn line(&mut self, word: &str) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(self.1.read_line(&mut line).unwrap(), 0, "it ended early");
            if let Some((_, rest)) = line.split_once(word) {
                return rest.trim().to_owned();
            }
        }
    }

    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// What [`Owner`] runs: no test of its own.
#[test]
fn another_process() {
    let Some(session) = std::env::var_os(OTHER_PROCESS) else {
        return;
    };
    let lease = Lease::acquire(Path::new(&session)).unwrap();
    println!("\nheld");
    let mut line = String::new();
    io::stdin().read_line(&mut line).unwrap();
    if line == "start a child\n" {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        println!("\nchild {}", child.id());
        io::stdin().read_line(&mut line).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }
    drop(lease);
}

#[test]
fn a_session_has_one_writer_and_a_released_lease_leaves_nothing() {
    // S18
    let folder = folder();
    let session = folder.path().join("a.jsonl");
    let lease = Lease::acquire(&session).unwrap();
    assert_eq!(names(folder.path()), ["a.jsonl.lease"]);
    assert!(crate::tree::session_files(folder.path()).is_empty());

    let holder = holder_of(Lease::acquire(&session));
    assert!(holder.is_this_process());
    assert_eq!(Lease::holder(&session), Some(holder));
    let other = Lease::acquire(&folder.path().join("b.jsonl")).unwrap();
    drop((lease, other));
    assert_eq!(names(folder.path()), [""; 0]);
    assert_eq!(Lease::holder(&session), None);
    drop(Lease::acquire(&session).unwrap());
}

#[cfg(unix)]
#[test]
fn all_names_of_a_session_have_one_lease() {
    // S18
    use std::os::unix::fs::symlink;
    let folder = folder();
    let (session, link) = (
        folder.path().join("a.jsonl"),
        folder.path().join("link.jsonl"),
    );
    symlink("a.jsonl", &link).unwrap();
    symlink(folder.path(), folder.path().join("folder")).unwrap();
    for exists in [false, true] {
        if exists {
            fs::write(&session, "").unwrap();
        }
        let _lease = Lease::acquire(&session).unwrap();
        holder_of(Lease::acquire(&link));
        holder_of(Lease::acquire(&folder.path().join("folder/link.jsonl")));
    }
    symlink("round.jsonl", folder.path().join("round.jsonl")).unwrap();
    kind_of(Lease::acquire(&folder.path().join("round.jsonl")));
}

#[test]
fn another_writer_is_refused_and_told_who_has_it() {
    // S18
    let folder = folder();
    let session = folder.path().join("a.jsonl");
    let owner = Owner::of(&session);
    let holder = holder_of(Lease::acquire(&session));
    assert_eq!(holder.pid, owner.0.id());
    assert!(!holder.is_this_process());
    assert_eq!(Lease::holder(&session), Some(holder));
    owner.kill();
}

#[test]
fn the_lease_of_a_killed_process_is_free_at_once_whatever_its_children_do() {
    // S18
    let folder = folder();
    let session = folder.path().join("a.jsonl");
    let mut owner = Owner::of(&session);
    let mut stdin = owner.0.stdin.take().unwrap();
    stdin.write_all(b"start a child\n").unwrap();
    let child = owner.line("child ");
    owner.kill();
    assert_eq!(names(folder.path()), ["a.jsonl.lease"]);
    assert_eq!(Lease::holder(&session), None);
    let taken = Lease::acquire(&session).map(|lease| {
        assert!(Lease::holder(&session).unwrap().is_this_process());
        drop(lease);
    });
    let killed = Command::new("kill").arg(child).status().unwrap();
    assert!(killed.success(), "it was alive all the time");
    taken.unwrap();
    assert_eq!(names(folder.path()), [""; 0]);
}

#[test]
fn whoever_waits_gets_the_lease_when_its_owner_lets_go() {
    // S18
    let folder = folder();
    let session = folder.path().join("a.jsonl");
    let mut owner = Owner::of(&session);
    let waiting: Vec<_> = (0..3)
        .map(|_| {
            let session = session.clone();
            thread::spawn(move || {
                let lease = Lease::wait(&session).unwrap();
                assert!(Lease::holder(&session).unwrap().is_this_process());
                drop(lease);
            })
        })
        .collect();
    thread::sleep(PAUSE);
    assert!(!waiting.iter().any(thread::JoinHandle::is_finished));
    drop(owner.0.stdin.take());
    assert!(owner.0.wait().unwrap().success());
    waiting
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    assert_eq!(names(folder.path()), [""; 0]);
}

#[test]
fn of_many_that_open_at_once_one_has_it_at_a_time() {
    // S18
    let folder = folder();
    let session = folder.path().join("a.jsonl");
    let inside = AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let Ok(lease) = Lease::acquire(&session) else {
                        continue;
                    };
                    assert_eq!(inside.fetch_add(1, SeqCst), 0);
                    inside.fetch_sub(1, SeqCst);
                    drop(lease);
                }
            });
        }
    });
    assert_eq!(names(folder.path()), [""; 0]);
}

#[test]
fn whatever_a_sidecar_says_its_lease_is_free_when_nobody_has_it() {
    // S18
    let folder = folder();
    let session = folder.path().join("a.jsonl");
    let here = serde_json::to_string(&this_process()).unwrap();
    let huge = "[".repeat(10_000_000);
    for content in ["", "\n", "{}", "null", "\u{0}\u{1b}", &here, &huge] {
        fs::write(folder.path().join("a.jsonl.lease"), content).unwrap();
        assert_eq!(Lease::holder(&session), None);
        let lease = Lease::acquire(&session).unwrap();
        let written = fs::read_to_string(folder.path().join("a.jsonl.lease")).unwrap();
        assert!(written.len() < 300 && written.ends_with("}\n"), "{written}");
        drop(lease);
    }
}

#[test]
fn an_owner_that_is_not_told_is_another_process() {
    let folder = folder();
    let session = folder.path().join("a.jsonl");
    let _lease = Lease::acquire(&session).unwrap();
    for content in ["", "{}", &serde_json::to_string(&ended()).unwrap()] {
        fs::write(folder.path().join("a.jsonl.lease"), content).unwrap();
        let error = Lease::acquire(&session).unwrap_err();
        assert_eq!(
            error.to_string(),
            "The session is open for writing in another process."
        );
    }
}

#[cfg(unix)]
#[test]
fn what_is_no_file_in_the_place_of_a_sidecar_is_an_error_and_stays() {
    use std::os::unix::fs::{FileTypeExt, symlink};
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("folder.jsonl.lease")).unwrap();
    symlink("elsewhere", path("link.jsonl.lease")).unwrap();
    let made = Command::new("mkfifo")
        .arg(path("pipe.jsonl.lease"))
        .status();
    assert!(made.unwrap().success());
    for name in ["folder.jsonl", "link.jsonl", "pipe.jsonl"] {
        let refused = kind_of(Lease::acquire(&path(name)));
        assert_eq!(refused, io::ErrorKind::InvalidInput, "{name}");
        assert_eq!(Lease::holder(&path(name)), None);
        assert!(Lease::wait(&path(name)).is_err());
    }
    assert!(!path("elsewhere").exists());
    let pipe = fs::symlink_metadata(path("pipe.jsonl.lease")).unwrap();
    assert!(pipe.file_type().is_fifo());
}

#[test]
fn the_kind_of_an_error_says_why_there_can_be_no_lease() {
    let folder = folder();
    let missing = folder.path().join("none/a.jsonl");
    assert_eq!(kind_of(Lease::acquire(&missing)), io::ErrorKind::NotFound);
    assert_eq!(Lease::holder(&missing), None);
    assert_eq!(
        kind_of(Lease::acquire(Path::new("/"))),
        io::ErrorKind::InvalidInput
    );
    let long = folder.path().join("a".repeat(255));
    assert_eq!(
        kind_of(Lease::acquire(&long)),
        io::ErrorKind::InvalidFilename
    );
}

#[cfg(unix)]
#[test]
fn in_a_folder_without_write_permission_there_is_no_lease() {
    use std::os::unix::fs::PermissionsExt;
    if rustix::process::geteuid().is_root() {
        return; // Permissions do not hold for root.
    }
    let folder = folder();
    let session = folder.path().join("a.jsonl");
    let allow = |mode| fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode));
    allow(0o500).unwrap();
    assert_eq!(
        kind_of(Lease::acquire(&session)),
        io::ErrorKind::PermissionDenied
    );
    allow(0o700).unwrap();
}

#[test]
fn an_owner_removes_nobody_elses_sidecar() {
    let folder = folder();
    let session = folder.path().join("a.jsonl");
    let lease = Lease::acquire(&session).unwrap();
    // As somebody may do who tidies up.
    fs::remove_file(folder.path().join("a.jsonl.lease")).unwrap();
    let other = Lease::acquire(&session).unwrap();
    drop(lease);
    holder_of(Lease::acquire(&session));
    drop(other);
    assert_eq!(names(folder.path()), [""; 0]);
}

/// A file system without locks.
fn no_locks(_: &File) -> Result<(), TryLockError> {
    #[cfg(unix)]
    let error = rustix::io::Errno::NOLCK.into();
    #[cfg(not(unix))]
    let error = io::ErrorKind::Unsupported.into();
    Err(TryLockError::Error(error))
}

#[test]
fn without_locks_the_sidecar_is_believed_unless_its_owner_has_ended() {
    // S18
    let folder = folder();
    let path = folder.path().join("a.jsonl.lease");
    let take = || Lease::take(&path, no_locks);
    let lease = take().unwrap();
    assert!(holder_of(take()).is_this_process());
    drop(lease);
    assert!(!path.exists());

    let elsewhere = LeaseHolder {
        host: "elsewhere".to_owned(),
        ..ended()
    };
    fs::write(&path, serde_json::to_string(&elsewhere).unwrap()).unwrap();
    assert_eq!(holder_of(take()), elsewhere);

    let before_this_process = LeaseHolder {
        started: Some("an earlier boot/1".to_owned()),
        ..this_process()
    };
    let free = [
        serde_json::to_string(&ended()).unwrap(),
        serde_json::to_string(&before_this_process).unwrap(),
        "nonsense".to_owned(),
    ];
    for content in free {
        fs::write(&path, content).unwrap();
        drop(take().unwrap());
        assert!(!path.exists());
    }
}

#[test]
fn without_locks_waiting_looks_again_and_again() {
    // S18
    let folder = folder();
    let path = folder.path().join("a.jsonl.lease");
    let lease = Lease::take(&path, no_locks).unwrap();
    let (tx, rx) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            drop(Lease::wait_at(&path, no_locks).unwrap());
            tx.send(()).unwrap();
        });
        thread::sleep(PAUSE);
        assert!(rx.try_recv().is_err());
        drop(lease);
        rx.recv().unwrap();
    });
}

#[test]
fn a_holder_reads_as_a_phrase_without_control_characters() {
    let since_ms = 1_796_072_640_123;
    let here = LeaseHolder {
        since_ms,
        ..this_process()
    };
    assert_eq!(
        here.to_string(),
        "this process (since 2026-11-30 21:04 UTC)"
    );
    let other = LeaseHolder {
        pid: 4711,
        started: None,
        ..here
    };
    assert_eq!(
        other.to_string(),
        "process 4711 on this machine (since 2026-11-30 21:04 UTC)"
    );
    let folder = folder();
    let path = folder.path().join("x");
    fs::write(
        &path,
        r#"{"pid":4711,"host":"h\u001b[31m","sinceMs":1000,"more":1}"#,
    )
    .unwrap();
    assert_eq!(
        LeaseHolder::read(&File::open(&path).unwrap())
            .unwrap()
            .to_string(),
        "process 4711 on host h[31m (since 1970-01-01 00:00 UTC)"
    );
}
