//! The program starts itself once more to ask for huge pages, as the same process with the same
//! words, where that can change anything and the environment does not say anything else.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const TUNABLES: &str = "GLIBC_TUNABLES";
const ASKED: &str = "glibc.malloc.hugetlb=1";

/// A simulating program that waits for its recording, and so has got past its start; it gets the
/// end of it when this is dropped.
struct Waiting(Child);

impl Waiting {
    fn new(tunables: Option<&str>) -> Self {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("fairground"));
        command
            .arg0("by another name")
            .args(["replay", "/dev/stdin"]);
        match tunables {
            Some(tunables) => command.env(TUNABLES, tunables),
            None => command.env_remove(TUNABLES),
        };
        let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
        let program = quiet.stdin(Stdio::piped()).spawn();
        let waiting = Self(program.expect("the program starts"));
        let start = Instant::now();
        while !waiting.reads() {
            assert!(start.elapsed() < Duration::from_secs(60), "it never reads");
            std::thread::sleep(Duration::from_millis(5));
        }
        waiting
    }

    fn of_proc(&self, name: &str) -> PathBuf {
        format!("/proc/{}/{name}", self.0.id()).into()
    }

    /// It has opened its standard input once more, as the recording.
    fn reads(&self) -> bool {
        let fds = std::fs::read_dir(self.of_proc("fd")).expect("it is there");
        let links = fds.flatten().map(|fd| std::fs::read_link(fd.path()));
        let mut times: BTreeMap<PathBuf, u32> = BTreeMap::new();
        for link in links.flatten() {
            *times.entry(link).or_default() += 1;
        }
        let is_pipe = |link: &Path| link.to_string_lossy().starts_with("pipe:");
        times.iter().any(|(link, n)| is_pipe(link) && *n == 2)
    }

    fn words(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.of_proc(name)).expect("it is ours");
        text.split_terminator('\0').map(String::from).collect()
    }

    /// What its environment says of the tunables.
    fn tunables(&self) -> Option<String> {
        let all = self.words("environ");
        let own = |word: &String| Some(word.strip_prefix(TUNABLES)?.strip_prefix('=')?.to_string());
        all.iter().find_map(own)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

#[test]
fn it_asks_where_the_kernel_gives_them_to_those_that_ask() {
    let enabled = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    let asks = enabled.is_ok_and(|enabled| enabled.contains("[madvise]"));
    let program = Waiting::new(None);
    assert_eq!(program.tunables(), asks.then(|| ASKED.to_string()));
    let words = ["by another name", "replay", "/dev/stdin"];
    assert_eq!(program.words("cmdline"), words);
}

#[test]
fn what_the_environment_says_is_left_alone() {
    for tunables in ["", "glibc.malloc.hugetlb=0", "glibc.malloc.tcache_count=9"] {
        let program = Waiting::new(Some(tunables));
        assert_eq!(program.tunables().as_deref(), Some(tunables));
    }
}
