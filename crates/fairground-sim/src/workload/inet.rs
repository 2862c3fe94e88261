//! Sockets of the loopback interface: which rules decide who sleeps and who is woken.
//!
//! Learned from udp(7), tcp(7), `Documentation/networking/ip-sysctl.rst` (sizes of buffers),
//! netdev's talks on the loopback path, and measurement.

/// One direction of a connection over 127.0.0.1: where the sent bytes arrive.
///
/// `send` runs the whole way up to the queue of the receiver on the sender's CPU: the loopback
/// interface puts the packet on that CPU's backlog, and the receive softirq takes it from there
/// when `send` enables softirqs again. So the receiver is woken by the sender, with the hint that
/// the waker is about to sleep (`WF_SYNC`), as `sock_def_readable` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inet {
    /// Datagrams. Sending never blocks: the loopback interface gives the send buffer back at once.
    /// One that finds the receive buffer full is dropped.
    Udp {
        /// Receive buffer in bytes of truesize (212992).
        rcvbuf: u32,
        /// The sender called `connect`, so its packets are numbered by a counter of its own. Those
        /// of all others to the same address share one: see `machine/ip_id.rs`.
        connected: bool,
    },
    /// A byte stream in segments of at most [`Inet::MSS`].
    ///
    /// - Bytes go to the send buffer. Full segments are sent while the receive window has room; a
    ///   part of a segment only if no other such part is unacknowledged (Nagle's rule with
    ///   Minshall's change).
    /// - What was sent stays in the send buffer until it is acknowledged. A writer sleeps while the
    ///   buffer is full, and is woken when it has fallen to two thirds, without the `WF_SYNC` hint
    ///   (`sk_stream_write_space`).
    /// - The receiver acknowledges when it has read a segment's worth, or all there is. The
    ///   acknowledgement runs in the softirq on the receiver's CPU, frees the send buffer and sends
    ///   what waited for the window.
    Tcp {
        /// Send buffer (`net.ipv4.tcp_wmem`, its maximum: streams grow there by autotuning).
        sndbuf: u32,
        /// Receive window (half of the maximum of `net.ipv4.tcp_rmem`).
        window: u32,
        /// Answers in the other direction carry the acknowledgements, so none is sent alone, and
        /// `TCP_NODELAY` is set: nothing waits for one.
        piggyback: bool,
        /// In which call the reader waits.
        reader: Reader,
    },
}

/// In which call the reader of a socket waits for data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// `recv`.
    Recv,
    /// `poll`, then `recv`.
    Poll,
    /// `recv` that does not block, `epoll_wait`, then `recv`. How its callback wakes is a decision
    /// (`epoll_wake`).
    Epoll,
}

impl Inet {
    /// UDP with the default receive buffer (`net.core.rmem_default`), from `sendto` of a socket
    /// that is not connected.
    pub const UDP: Self = Self::udp(false);
    /// TCP with default limits, for a bulk transfer.
    pub const STREAM: Self = Self::Tcp {
        sndbuf: 4 << 20,
        window: 3 << 20,
        piggyback: false,
        reader: Reader::Recv,
    };
    /// TCP with default limits, for requests and answers.
    pub const REQUEST: Self = Self::Tcp {
        sndbuf: 4 << 20,
        window: 3 << 20,
        piggyback: true,
        reader: Reader::Recv,
    };
    /// UDP with the default receive buffer from a socket that is connected, or not.
    pub const fn udp(connected: bool) -> Self {
        Self::Udp {
            rcvbuf: 212_992,
            connected,
        }
    }
    /// Bytes in a segment: the interface's MTU of 65536 without 52 bytes of headers.
    pub const MSS: u32 = 65_483;
}
