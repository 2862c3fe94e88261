//! What a message costs beside the scheduler: open files, pipes, epoll. No rules of the scheduler,
//! and the engine asks for none; but where threads share a file they decide with it who waits for
//! whom.
//!
//! Sources: "fs: introduce file_ref_t", Christian Brauner, 2024 (Linux 6.13); "pipe: don't update
//! {a,c,m}time for anonymous pipes", Oleg Nesterov, 2025, and "pipe: cache 2 pages instead of 1",
//! Mateusz Guzik, 2025 (Linux 6.15).

/// What a system call does to an open file and to a pipe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenFiles {
    /// How threads take a reference.
    pub count: FileRef,
    /// What is on the line of the count.
    pub count_line: FileRefLine,
    /// Which pipes keep their times.
    pub pipe_times: PipeTimes,
    /// How many emptied pages a pipe keeps for the next writes, which need not allocate them.
    pub pipe_tmp_pages: u32,
    /// When a reader wakes a writer.
    pub pipe_wake_writer: PipeWakeWriter,
    /// Whether each buffer that is filled or emptied takes the lock of the readers' wait queue, for
    /// the sake of watch queues ("fs/pipe: remove unnecessary spinlock from pipe_write()" and
    /// "fs/pipe: use spinlock in pipe_read() only if there is a watch_queue", Max Kellermann, 2023,
    /// Linux 6.7; since 5.5 or so).
    pub pipe_ring_lock: bool,
    /// How the callback of epoll wakes.
    pub epoll_wake: EpollWake,
}

impl OpenFiles {
    /// As in Linux 6.18.
    pub const LINUX_6_18: Self = Self {
        count: FileRef::Add,
        count_line: FileRefLine::Own,
        pipe_times: PipeTimes::Fifos,
        pipe_tmp_pages: 2,
        pipe_wake_writer: PipeWakeWriter::Freed,
        pipe_ring_lock: false,
        epoll_wake: EpollWake::Sync,
    };
}

/// What `fdget` does where threads share their table of files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileRef {
    /// Reads the count and swaps it unless it was zero, until nobody was quicker
    /// (`atomic_long_inc_not_zero`).
    IncNotZero,
    /// Adds to it, whatever it is (`file_ref_get`).
    Add,
}

/// What is on the line of the count.
///
/// Whoever else uses the file takes that line away, and a call that still has to look at the file,
/// as `fsnotify` does at its end, fetches it once more. Sources: "fs.h: Optimize file struct to
/// prevent false sharing", chenzhiyin, 2023 (Linux 6.5: `f_op`, `f_path` and `f_inode` leave the
/// line, `f_mode` comes to it); "fs: place f_ref to 3rd cache line in struct file to resolve false
/// sharing", Pan Deng, 2025 (Linux 6.15).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileRefLine {
    /// Fields that each call reads: `f_mode`, before Linux 6.5 `f_op` and `f_inode`.
    Fields,
    /// None of these.
    Own,
}

/// Which pipes keep the times of their last read and write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PipeTimes {
    /// All: each call looks whether the clock of ticks has moved since (`file_accessed`,
    /// `file_update_time`).
    EachCall,
    /// Those with a name in the file system.
    Fifos,
}

/// When a read of a pipe wakes a writer that waits for room.
///
/// Source: "pipe_read: don't wake up the writer if the pipe is still full", Oleg Nesterov, 2025
/// (Linux 6.14).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PipeWakeWriter {
    /// If the pipe was full, whether or not the read has made room (up to 6.13).
    WasFull,
    /// If the pipe was full and is not any more.
    Freed,
}

/// How who waits in `epoll_wait` is woken.
///
/// Source: "epoll: Add synchronous wakeup support for ep_poll_callback", Xuewen Yan, 2024 (Linux
/// 6.13; proposed for stable kernels in January 2025, of which the list of 5.4 was seen and that of
/// 6.12 was not).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EpollWake {
    /// As by any waker.
    Plain,
    /// As the event wakes, so by data of a socket with the hint that the waker will sleep
    /// (`WF_SYNC`).
    Sync,
}
