//! Channels between tasks, and the rules of the kernel that decide who sleeps on them and who is
//! woken.
//!
//! Learned from pipe(7), unix(7), changelogs of the pipe rework of Linux 5.5, and measurement: how
//! many messages fit, and when a full channel can be written again.

/// A byte stream between tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chan {
    /// Rules of capacity and waking.
    pub kind: ChanKind,
}

/// Rules of a channel, as far as they decide who sleeps and who is woken. All wake-ups by writers
/// and readers carry the hint that the waker is about to sleep (`WF_SYNC`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChanKind {
    /// `pipe(2)`, as since Linux 5.5. The pipe is a ring of `slots` buffers of `page_bytes`.
    ///
    /// - A write of n bytes to a pipe that is not empty first merges its n % `page_bytes` bytes
    ///   into the last buffer if they fit there; the rest takes new buffers, each filled up before
    ///   the next. A write to an empty pipe always takes new ones. So 100-byte messages come 40 to
    ///   a page, 640 to a pipe.
    /// - A writer that finds no room in the middle of its bytes wakes the reader before it sleeps.
    /// - A buffer is free again when its last byte has been read.
    /// - The reader is woken only by a write that found the pipe empty; the writer only by a read
    ///   that freed a buffer of a pipe whose ring was full.
    /// - Readers and writers wait exclusively: one is woken. A reader that leaves data behind wakes
    ///   the next reader, a writer that leaves room wakes the next writer. Pollers are all woken.
    Pipe {
        /// Buffers in the ring (16).
        slots: u32,
        /// Bytes of one buffer (4096).
        page_bytes: u32,
    },
    /// A connected pair of `AF_UNIX` stream sockets.
    ///
    /// - A write above [`ChanKind::socket_message_max`] bytes is several messages of that size and
    ///   a rest. Its writer sleeps between them while there is no room, and its reader gets what
    ///   is there.
    /// - A message is charged its [`ChanKind::socket_truesize`] against the send buffer. A write
    ///   may proceed while the charge *before* it is below `sndbuf` (278 small messages with
    ///   defaults).
    /// - A message is uncharged when its last byte has been read. A blocked writer is woken when
    ///   the charge has fallen to a quarter of `sndbuf`, not before.
    /// - The reader is woken by each message, if it sleeps.
    Socket {
        /// Send buffer in bytes of truesize (212992).
        sndbuf: u32,
    },
}

impl ChanKind {
    /// A pipe with the default capacity.
    pub const PIPE: Self = Self::Pipe {
        slots: 16,
        page_bytes: 4096,
    };
    /// A socket pair with the default send buffer (`net.core.wmem_default`).
    pub const SOCKET: Self = Self::Socket { sndbuf: 212_992 };

    /// Most bytes of one message: half the send buffer but 64, and not more than are in 32 KiB of
    /// pages and the largest first part that is one page. Of 1 MiB sent at once to a socket with
    /// the default buffer 219264 bytes fit, which is six messages (Linux 6.18).
    pub fn socket_message_max(sndbuf: u32) -> u32 {
        const PAGES: u32 = 32_768;
        let half = (sndbuf / 2).saturating_sub(64).max(1);
        half.min(PAGES + Self::PAGE - Self::TRAILER)
    }

    /// What a message of `bytes` is charged in a socket, as measured on Linux 6.18 by filling
    /// sockets: a descriptor of 256 bytes; the first part in one allocation together with a
    /// trailer of 320 bytes, rounded up to cache lines and then to a power of two; what does not
    /// fit into a page there in whole pages.
    pub fn socket_truesize(bytes: u32) -> u32 {
        const DESCRIPTOR: u32 = 256;
        let paged = Self::socket_paged(bytes);
        DESCRIPTOR + Self::socket_head(bytes) + paged.next_multiple_of(Self::PAGE)
    }

    /// Bytes of the allocation with the first part of a message.
    pub fn socket_head(bytes: u32) -> u32 {
        let first = bytes.clamp(1, 1 << 28) - Self::socket_paged(bytes);
        (first.next_multiple_of(64) + Self::TRAILER).next_power_of_two()
    }

    /// Bytes of a message that are in pages behind the first part.
    pub fn socket_paged(bytes: u32) -> u32 {
        let bytes = bytes.clamp(1, 1 << 28);
        let above = bytes.saturating_sub(Self::PAGE - Self::TRAILER);
        bytes.min(above.next_multiple_of(Self::PAGE))
    }

    const TRAILER: u32 = 320;
    const PAGE: u32 = 4096;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages that fit into a socket with the default send buffer, counted on Linux 6.18.
    #[test]
    fn as_many_messages_fit_as_were_counted() {
        let counted = [
            (1, 278),
            (100, 278),
            (192, 278),
            (193, 167),
            (704, 167),
            (705, 93),
            (1728, 93),
            (1729, 49),
            (3776, 49),
            (3777, 44),
            (5000, 34),
            (7000, 26),
            (7873, 24),
            (12000, 17),
            (20000, 11),
            (30000, 7),
        ];
        for (bytes, messages) in counted {
            let ChanKind::Socket { sndbuf } = ChanKind::SOCKET else {
                unreachable!()
            };
            let fit = sndbuf.div_ceil(ChanKind::socket_truesize(bytes));
            assert_eq!(fit, messages, "{bytes} bytes");
        }
    }
}
