//! The lines of a channel, and what one use of it moves between CPUs.
//!
//! A pipe is a `pipe_inode_info` (in the order of its fields: the mutex, both wait queues, the
//! positions of the ring, the counts of its users; the pages it keeps and the pointer to its
//! buffers are in `tmp_page.rs`), an array of `pipe_buffer`s of 40 bytes and the pages of data. A
//! message that joins the last buffer writes that buffer's length and leaves the ring alone. Of a
//! socket, lock and queue are one line, and its buffers are data.

use fairground::policy::{Features, FileRef, FileRefLine, PipeTimes};
use fairground::value::TaskId;

use super::Sim;
use super::pipe_mutex::PipeMutex;
use super::tmp_page::TmpPages;
use super::todo::End;
use crate::cache::{Access, Cache, LineId, Name};
use crate::costs::KernelOp;
use crate::workload::program::{Chan, ChanKind};

/// Lines for data; a message takes the next ones, round and round.
const DATA_LINES: u32 = 16;
/// Bytes of a `struct pipe_buffer`.
const BUFFER_BYTES: u32 = 40;

/// Lines of a pipe.
const PIPE: [&str; 3] = [
    "mutex,rd_wait,wr_wait",
    "head,tail,readers,writers",
    "tmp_page,bufs",
];
const BUFFER: Name = ("pipe_buffer", "page,offset,len,ops");

/// Word of the mutex's line: the lock of the readers' wait queue (that of the writers is on the
/// line, too).
const WAIT_QUEUE: u8 = 1 << 4;
/// Word of the second line of a pipe: head and tail.
const RING: u8 = 1 << 2;

/// Word of an open file's line: the count of references.
const FILE_COUNT: u8 = 1 << 7;
/// Word of what calls read, where that is on the same line.
const FILE_MODE: u8 = 1;

/// Where a channel's words are, and who has its lock.
#[derive(Debug)]
pub struct Lines {
    pub(super) lock: LineId,
    /// Positions of the ring.
    ring: (LineId, u8),
    /// Pages that wait for the next writes; not of a socket.
    pub(super) tmp: Option<TmpPages>,
    /// First line of the buffers and their number; none of a socket.
    buffers: (LineId, u32),
    data: LineId,
    /// The `struct file` of each end.
    files: LineId,
    /// The times of the inode, where they are kept, and the count of ticks at which each end has
    /// set them last.
    times: (LineId, [u64; 2]),
    written: u32,
    fetched: u32,
    pub(super) mutex: PipeMutex,
}

impl Lines {
    /// Of an untouched channel.
    pub fn new(chan: &Chan, cache: &mut Cache, features: &Features) -> Self {
        let slots = match chan.kind {
            ChanKind::Pipe { slots, .. } => slots,
            ChanKind::Socket { .. } => 0,
        };
        let pipe = slots > 0;
        let lock = match pipe {
            true => cache.alloc_object("pipe_inode_info", &PIPE, 0),
            false => cache.alloc_named(("sock", "lock,queue"), 1, 0),
        };
        let ring = if pipe {
            (lock + 1, RING)
        } else {
            (lock, 0b110)
        };
        let keeps_times = pipe && features.files.pipe_times == PipeTimes::EachCall;
        Self {
            lock,
            ring,
            tmp: pipe.then(|| TmpPages::new(lock + 2, features.files.pipe_tmp_pages)),
            buffers: (
                cache.alloc_named(BUFFER, (slots * BUFFER_BYTES).div_ceil(64), 0),
                slots,
            ),
            data: cache.alloc_named(("[message]", "data"), DATA_LINES, 0),
            files: cache.alloc_object("file", &["f_ref(reader)", "f_ref(writer)"], 0),
            times: (
                cache.alloc_named(("inode", "i_atime,i_mtime"), keeps_times.into(), 0),
                [0; 2],
            ),
            written: 0,
            fetched: 0,
            mutex: PipeMutex::default(),
        }
    }
}

impl Sim<'_> {
    /// A system call takes its reference to the file of an end (`fdget`).
    pub(super) fn take_file(&mut self, id: TaskId, c: usize, end: End, op: KernelOp) {
        let access = match self.sys.features.files.count {
            FileRef::IncNotZero => Access::CasLoop,
            FileRef::Add => Access::Rmw,
        };
        if let Some(file) = self.counted_file(id, c, end) {
            self.touch(op, file, FILE_COUNT, access);
        }
    }

    /// It looks once more at the file (`fsnotify_modify`), and drops the reference (`fdput`).
    pub(super) fn drop_file(&mut self, id: TaskId, c: usize, end: End, op: KernelOp) {
        let Some(file) = self.counted_file(id, c, end) else {
            return;
        };
        if self.sys.features.files.count_line == FileRefLine::Fields {
            self.touch(op, file, FILE_MODE, Access::Load);
        }
        self.touch(op, file, FILE_COUNT, Access::Rmw);
    }

    /// The file of an end, where threads share the table of files; who has the table for himself
    /// needs no reference.
    fn counted_file(&self, id: TaskId, c: usize, end: End) -> Option<LineId> {
        let template = self.tasks[id.idx()].template as usize;
        self.shares_files[template].then(|| self.chans[c].lines.files + end as u32)
    }

    /// A call that has moved bytes looks at the time of its kind, and sets it once a tick.
    pub(super) fn keep_times(&mut self, c: usize, end: End) {
        if self.sys.features.files.pipe_times == PipeTimes::Fifos {
            return;
        }
        let (op, word) = match end {
            End::Read => (KernelOp::TouchAtime, 1),
            End::Write => (KernelOp::FileUpdateTime, 1 << 1),
        };
        self.host.op(op);
        let now = self.jiffies_now();
        let (line, set) = &mut self.chans[c].lines.times;
        let is_old = std::mem::replace(&mut set[end as usize], now) != now;
        let line = *line;
        self.touch(op, line, word, Access::Load);
        if is_old {
            self.touch(op, line, word, Access::Store);
        }
    }

    /// Looks where head and tail are.
    pub(super) fn read_ring(&mut self, c: usize, op: KernelOp) {
        let (line, words) = self.chans[c].lines.ring;
        self.touch(op, line, words, Access::Load);
    }

    /// Takes the lock of a wait queue (`prepare_to_wait`, `__wake_up`), if anybody waits or not.
    pub(super) fn lock_wait_queue(&mut self, c: usize) {
        let line = self.chans[c].lines.lock;
        self.touch(KernelOp::WaitQueue, line, WAIT_QUEUE, Access::Rmw);
    }

    /// Fills or empties the buffers from position `from` up to `to`; if these are the same, a part
    /// of one.
    pub(super) fn touch_buffers(&mut self, c: usize, op: KernelOp, from: u32, to: u32) {
        let (ring, words) = self.chans[c].lines.ring;
        let (first, slots) = self.chans[c].lines.buffers;
        if slots == 0 || from != to {
            self.touch(op, ring, words, Access::Store);
        }
        if slots == 0 {
            return;
        }
        self.find_buffers(c, op);
        // A writer joins the buffer before the head, a reader takes from the one at the tail.
        let part = if op == KernelOp::PipeWrite {
            from.wrapping_sub(1)
        } else {
            from
        };
        let (at, nr) = match to.wrapping_sub(from) {
            0 => (part, 1),
            nr => (from, nr),
        };
        for buffer in 0..nr {
            let byte = at.wrapping_add(buffer) % slots * BUFFER_BYTES;
            let (line, words) = (first + byte / 64, 1 << (byte % 64 / 8));
            // Where its data begin and end says from where to where to copy.
            if op == KernelOp::PipeRead || from == to {
                self.touch(op, line, words, Access::Load);
            }
            self.touch(op, line, words, Access::Store);
            if from != to && self.sys.features.files.pipe_ring_lock {
                self.lock_wait_queue(c);
            }
        }
        match op {
            KernelOp::PipeWrite => self.take_pages(c, to.wrapping_sub(from)),
            _ => self.free_pages(c, to.wrapping_sub(from)),
        }
    }

    /// Copies `bytes` through the channel's data lines.
    pub(super) fn data(&mut self, c: usize, op: KernelOp, bytes: u32, access: Access) {
        self.host.copy(op, bytes);
        let lines = &mut self.chans[c].lines;
        let at = if access == Access::Load {
            &mut lines.fetched
        } else {
            &mut lines.written
        };
        let from = *at;
        *at = (*at + bytes) % (DATA_LINES * 64);
        let first = lines.data;
        let touched = (from % 64 + bytes).div_ceil(64).min(DATA_LINES);
        let line = |i| first + (from / 64 + i) % DATA_LINES;
        self.host.copy_lines(op, (0..touched).map(line), access);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Place;
    use crate::machine::testing::{on, server, with};
    use crate::machine_file::Machine;
    use crate::spec::Scenario;
    use crate::workload::Env;

    /// CPUs of a machine on which load and swap of a CAS loop are two transactions.
    fn older_server(cpus: usize) -> Machine {
        let whole = Machine::builtin("icx-8358-2s").unwrap();
        whole.shrunk(cpus).unwrap()
    }

    /// When `argv` has ended on 16 CPUs, ps.
    fn end(argv: &str, set: (&str, &str)) -> u64 {
        on(&older_server(16), argv, &[set], |sim| {
            sim.run().unwrap();
            sim.now
        })
    }

    /// What CPU 5 takes to take a reference to a file that CPU 0 has just taken one to, and then to
    /// drop it when CPU 0 has been there again, ps.
    fn file_ps(mode: &str, set: (&str, &str)) -> [u64; 2] {
        let argv = format!("hackbench -g 1 -f 8 --pipe -l 10 {mode}");
        on(&older_server(16), &argv, &[set], |sim| {
            sim.run().unwrap();
            let (id, c, op) = (TaskId(1), 0, KernelOp::PipeWrite);
            let mut at = sim.now;
            let mut takes = |cpu, drops| {
                at += 1_000_000;
                sim.host.begin(cpu, at);
                match drops {
                    false => sim.take_file(id, c, End::Write, op),
                    true => sim.drop_file(id, c, End::Write, op),
                }
                sim.host.at - at
            };
            takes(0, false);
            let taking = takes(5, false);
            takes(0, false);
            [taking, takes(5, true)]
        })
    }

    /// Processes have their tables to themselves, so they count nothing.
    #[test]
    fn who_shares_no_table_of_files_pays_nothing_for_them() {
        assert_eq!(file_ps("--process", ("file_ref", "inc-not-zero")), [0, 0]);
    }

    #[test]
    fn reading_the_count_first_takes_longer_where_threads_share_files() {
        let [slow, quick] = ["inc-not-zero", "add"].map(|v| file_ps("--threads", ("file_ref", v)));
        assert!(slow[0] > quick[0] + 40_000, "{slow:?} {quick:?}");
        assert_eq!(slow[1], quick[1]);
    }

    /// Who has used the file meanwhile has its line.
    #[test]
    fn a_file_whose_fields_are_beside_its_count_is_fetched_once_more() {
        let [slow, quick] = ["fields", "own"].map(|v| file_ps("--threads", ("file_ref_line", v)));
        assert_eq!(slow[0], quick[0]);
        assert!(slow[1] > quick[1] + 10_000, "{slow:?} {quick:?}");
    }

    /// With the mutex held, and on its line.
    #[test]
    fn a_lock_for_each_buffer_takes_time() {
        let argv = "perf bench sched pipe -l 200";
        let times = ["on", "off"].map(|value| end(argv, ("pipe_ring_lock", value)));
        assert!(times[0] > times[1], "{times:?}");
    }

    /// Forty messages are in a buffer. Of a full pipe 39 are read, one a millisecond: by the older
    /// rule each of these reads wakes the writer, in vain; by the newer one none does.
    #[test]
    fn a_read_that_frees_no_buffer_wakes_a_writer_by_the_older_rule() {
        let text = "duration = \"60ms\"\npipes = [\"p\"]\n\
                    [[task]]\nname = \"writer\"\n\
                    steps = [{ loop = \"forever\", steps = [{ write = \"p\", bytes = 100 }] }]\n\
                    [[task]]\nname = \"reader\"\nsteps = [{ sleep = \"5ms\" }, \
                    { loop = 39, steps = [{ read = \"p\", bytes = 100 }, { sleep = \"1ms\" }] }]\n";
        let scenario = Scenario::parse("s", text).unwrap();
        let workload = scenario.workload(&Env { cpus: 2 }).unwrap();
        let woken = ["was-full", "freed"].map(|value| {
            with(
                &server(2),
                &workload,
                &[("pipe_wake_writer", value)],
                |sim| {
                    sim.run().unwrap();
                    sim.host.counters.wakeups
                },
            )
        });
        assert_eq!(woken[0], woken[1] + 39, "{woken:?}");
    }

    /// A socket has no times.
    #[test]
    fn keeping_the_times_of_a_pipe_takes_time() {
        let spent = |argv: &str, which: &str| {
            on(&server(16), argv, &[("pipe_times", which)], |sim| {
                sim.run().unwrap();
                let ops = [KernelOp::FileUpdateTime, KernelOp::TouchAtime];
                let spent = ops.map(|op| sim.host.profile.self_ps_of(Place::Op(op)));
                (spent, sim.now)
            })
        };
        let pipe = "perf bench sched pipe -l 200";
        let (kept, free) = (spent(pipe, "each-call"), spent(pipe, "fifos"));
        assert!(kept.0.iter().all(|ps| *ps > 0) && free.0 == [0, 0]);
        assert!(kept.1 > free.1);
        assert_eq!(spent("hackbench -g 1 -f 8 -l 20", "each-call").0, [0, 0]);
    }
}
