//! The pages that a pipe keeps when they are empty (`tmp_page`), and what is on their line.
//!
//! The third line of a `pipe_inode_info` has the pages, who wants signals about the pipe
//! (`fasync_readers`, `fasync_writers`) and the pointer to its buffers. Each call reads it, and a
//! page that is kept or taken writes it: twice for the 40 messages of 100 bytes that a page holds,
//! or twice for each message that finds the pipe empty. The layout is that of Linux 6.18.

use super::Sim;
use super::todo::End;
use crate::cache::{Access, LineId};
use crate::costs::KernelOp;

/// Word of the first page that is kept; that of the second follows.
const TMP_PAGE: u8 = 1;
/// Word of who wants signals about data; that about room follows.
const FASYNC: u8 = 1 << 2;
/// Word of the pointer to the buffers.
const BUFS: u8 = 1 << 4;

/// Pages that wait for the next writes.
#[derive(Debug)]
pub struct TmpPages {
    line: LineId,
    kept: u32,
    /// As many as can be kept.
    most: u32,
}

impl TmpPages {
    /// Of a new pipe, which has none.
    pub fn new(line: LineId, most: u32) -> Self {
        Self {
            line,
            kept: 0,
            most,
        }
    }

    /// The word of the `n`th page.
    fn word(n: u32) -> u8 {
        TMP_PAGE << n
    }
}

impl Sim<'_> {
    fn touch_tmp(&mut self, c: usize, op: KernelOp, word: u8, access: Access) {
        if let Some(tmp) = &self.chans[c].lines.tmp {
            let line = tmp.line;
            self.touch(op, line, word, access);
        }
    }

    /// Where the buffers are.
    pub(super) fn find_buffers(&mut self, c: usize, op: KernelOp) {
        self.touch_tmp(c, op, BUFS, Access::Load);
    }

    /// Whether a signal is wanted, after a call at `end` (`kill_fasync`); nobody wants one.
    pub(super) fn look_for_fasync(&mut self, c: usize, end: End) {
        self.touch_tmp(c, end.op(), FASYNC << end as u8, Access::Load);
    }

    /// A write fills `pages` new buffers, with pages that were kept or new ones.
    pub(super) fn take_pages(&mut self, c: usize, pages: u32) {
        for _ in 0..pages {
            let Some(tmp) = &mut self.chans[c].lines.tmp else {
                return;
            };
            if tmp.kept == 0 {
                self.host.op(KernelOp::AllocPage);
                continue;
            }
            tmp.kept -= 1;
            let word = TmpPages::word(tmp.kept);
            self.touch_tmp(c, KernelOp::PipeWrite, word, Access::Store);
        }
    }

    /// A read has emptied `pages` buffers.
    pub(super) fn free_pages(&mut self, c: usize, pages: u32) {
        for _ in 0..pages {
            let Some(tmp) = &mut self.chans[c].lines.tmp else {
                return;
            };
            if tmp.kept == tmp.most {
                self.host.op(KernelOp::FreePage);
                continue;
            }
            let word = TmpPages::word(tmp.kept);
            tmp.kept += 1;
            self.touch_tmp(c, KernelOp::PipeRead, word, Access::Store);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Place;
    use crate::machine::testing::{on, server};

    /// What allocating and freeing take in all, ps, until `argv` has ended.
    fn spent(argv: &str, most: &str) -> [u64; 2] {
        on(&server(4), argv, &[("pipe_tmp_pages", most)], |sim| {
            sim.run().unwrap();
            let ops = [KernelOp::AllocPage, KernelOp::FreePage];
            ops.map(|op| sim.host.profile.self_ps_of(Place::Op(op)))
        })
    }

    /// A pipe that is empty after each message has one page, which is allocated once.
    #[test]
    fn a_page_that_is_kept_is_not_allocated_again() {
        let argv = |n| format!("perf bench sched pipe -l {n}");
        let once = spent(&argv(100), "1");
        assert!(once[0] > 0 && once[1] == 0, "{once:?}");
        assert_eq!(spent(&argv(200), "1"), once);
        let each = spent(&argv(100), "0");
        assert!(each[0] > 50 * once[0] && each[1] > 50 * once[0], "{each:?}");
    }

    #[test]
    fn a_socket_has_no_pages() {
        assert_eq!(spent("hackbench -g 1 -f 4 -l 20", "2"), [0, 0]);
    }
}
