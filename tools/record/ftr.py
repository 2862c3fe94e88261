"""Record scheduler events with an ftrace instance (tracefs), decode the raw ring-buffer pages with
full nanosecond time stamps (CLOCK_MONOTONIC) and print them in the layout of `perf script`."""

import os, struct, re, glob

TR = "/sys/kernel/tracing"
INST = TR + "/instances/kt"
STATE = {0: "R", 1: "S", 2: "D", 4: "T", 8: "t", 0x10: "X", 0x20: "Z", 0x40: "P", 0x80: "I"}


def w(p, v):
    with open(p, "w") as f:
        f.write(str(v))


class Ftrace:
    def __init__(self, events, kb=12288):
        self.events = events
        if not os.path.isdir(INST):
            os.mkdir(INST)
        w(INST + "/tracing_on", 0)
        w(INST + "/trace_clock", "mono")
        w(INST + "/buffer_size_kb", kb)
        self.fmt = {}
        for e in events:
            t = open("%s/events/sched/%s/format" % (TR, e)).read()
            i = int(re.search(r"^ID: (\d+)", t, re.M)[1])
            fl = {}
            for m in re.finditer(
                r"field:(.*?)([\w]+)(\[\d*\])?;\s*offset:(\d+);\s*size:(\d+);\s*signed:(\d);", t
            ):
                fl[m[2]] = (int(m[4]), int(m[5]), int(m[6]), "__data_loc" in m[1], bool(m[3]))
            self.fmt[i] = (e, fl)
        for e in events:
            w("%s/events/sched/%s/enable" % (INST, e), 1)

    def start(self):
        w(INST + "/trace", "")
        w(INST + "/tracing_on", 1)

    def stop(self):
        w(INST + "/tracing_on", 0)

    def close(self):
        for e in self.events:
            w("%s/events/sched/%s/enable" % (INST, e), 0)
        os.rmdir(INST)

    def raw(self):
        out = {}
        for p in sorted(glob.glob(INST + "/per_cpu/cpu*")):
            c = int(p.rsplit("cpu", 1)[1])
            fd = os.open(p + "/trace_pipe_raw", os.O_RDONLY | os.O_NONBLOCK)
            b = []
            while True:
                try:
                    x = os.read(fd, 4096)
                except BlockingIOError:
                    break
                if not x:
                    break
                b.append(x)
            os.close(fd)
            out[c] = b"".join(b)
        return out

    def decode(self, raw):
        ev = []
        lost = 0
        for cpu, data in raw.items():
            for off in range(0, len(data), 4096):
                pg = data[off : off + 4096]
                ts, commit = struct.unpack_from("<QQ", pg)
                n = commit & 0xFFFFF
                if commit & (1 << 31):
                    lost += 1
                p = 16
                end = 16 + n
                while p + 4 <= end:
                    h = struct.unpack_from("<I", pg, p)[0]
                    tl = h & 31
                    d = h >> 5
                    if tl == 29:
                        if d == 0:
                            break
                        p += 4 + struct.unpack_from("<I", pg, p + 4)[0]
                        ts += d
                        continue
                    if tl == 30:
                        ts += (struct.unpack_from("<I", pg, p + 4)[0] << 27) + d
                        p += 8
                        continue
                    if tl == 31:
                        ts = ((struct.unpack_from("<I", pg, p + 4)[0] << 27) + d) | (
                            ts & (0x1F << 59)
                        )
                        p += 8
                        continue
                    ts += d
                    if tl == 0:
                        ln = struct.unpack_from("<I", pg, p + 4)[0] - 4
                        q = p + 8
                    else:
                        ln = tl * 4
                        q = p + 4
                    ev.append((ts, cpu, pg[q : q + ln]))
                    p = q + ln
        ev.sort(key=lambda e: e[0])
        return ev, lost

    def text(self, raw):
        ev, lost = self.decode(raw)
        out = []
        comm = {0: "swapper"}
        for ts, cpu, r in ev:
            tid = struct.unpack_from("<H", r)[0]
            if tid not in self.fmt:
                continue
            name, fl = self.fmt[tid]

            def g(f):
                o, s, sg, dl, arr = fl[f]
                if dl:
                    v = struct.unpack_from("<I", r, o)[0]
                    return (
                        r[v & 0xFFFF : (v & 0xFFFF) + (v >> 16)]
                        .split(b"\0")[0]
                        .decode(errors="replace")
                    )
                if arr:
                    return r[o : o + s].split(b"\0")[0].decode(errors="replace")
                return int.from_bytes(r[o : o + s], "little", signed=bool(sg))

            pid = g("common_pid")
            if name == "sched_switch":
                s = g("prev_state")
                st = STATE.get(s & 0xFF, hex(s & 0xFF)) + ("+" if s & 0x100 else "")
                comm[g("prev_pid")] = g("prev_comm") if g("prev_pid") else "swapper"
                comm[g("next_pid")] = g("next_comm") if g("next_pid") else "swapper"
                b = (
                    "prev_comm=%s prev_pid=%d prev_prio=%d prev_state=%s ==> next_comm=%s next_pid=%d next_prio=%d"
                    % (
                        g("prev_comm"),
                        g("prev_pid"),
                        g("prev_prio"),
                        st,
                        g("next_comm"),
                        g("next_pid"),
                        g("next_prio"),
                    )
                )
            elif name in ("sched_wakeup", "sched_wakeup_new", "sched_waking"):
                b = "comm=%s pid=%d prio=%d target_cpu=%03d" % (
                    g("comm"),
                    g("pid"),
                    g("prio"),
                    g("target_cpu"),
                )
            elif name == "sched_migrate_task":
                b = "comm=%s pid=%d prio=%d orig_cpu=%d dest_cpu=%d" % (
                    g("comm"),
                    g("pid"),
                    g("prio"),
                    g("orig_cpu"),
                    g("dest_cpu"),
                )
            elif name == "sched_process_fork":
                b = "comm=%s pid=%d child_comm=%s child_pid=%d" % (
                    g("parent_comm"),
                    g("parent_pid"),
                    g("child_comm"),
                    g("child_pid"),
                )
            else:
                b = "comm=%s pid=%d prio=%d" % (g("comm"), g("pid"), g("prio"))
            out.append(
                "%16s %5d [%03d] %5d.%09d: %24s: %s"
                % (comm.get(pid, "<...>"), pid, cpu, ts // 10**9, ts % 10**9, "sched:" + name, b)
            )
        return "\n".join(out) + "\n", lost
