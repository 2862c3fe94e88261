"""Replaces the names of tasks that are not part of a case by "stranger" (text, perf.data, raw pages) and writes trace.dat (version 6)."""

import re, struct, os, io, lzma, glob

KT = re.compile(
    rb"^(swapper(/\d+)?|kworker|rcu_|rcuo|ksoftirqd|migration/|kcompactd|khugepaged|kthreadd|cpuhp|oom_|writeback|ktmain|perf|trace-cmd|kswapd|jbd2|khungtask|watchdog|kdevtmpfs|kblockd|irq/|ext4|<\.\.\.>)"
)


def cname(b, keep):
    """16-byte comm field -> same or 'stranger'"""
    s = b.split(b"\0")[0]
    if not s or s in keep or KT.match(s):
        return b
    return b"stranger".ljust(len(b), b"\0")


LINE = re.compile(r"^\s*(.*?)\s+(-?\d+)\s+\[(\d+)\]\s+([\d.]+):\s+(sched:\w+):\s?(.*)$")


def text_line(l, keep):
    m = LINE.match(l)
    if not m:
        return l

    def c(s):
        b = s.encode()
        return s if b in keep or KT.match(b) or not s else "stranger"

    r = m[6]
    r = re.sub(r"prev_comm=(.*?) prev_pid=", lambda x: "prev_comm=%s prev_pid=" % c(x[1]), r)
    r = re.sub(r"next_comm=(.*?) next_pid=", lambda x: "next_comm=%s next_pid=" % c(x[1]), r)
    r = re.sub(r"child_comm=(.*?) child_pid=", lambda x: "child_comm=%s child_pid=" % c(x[1]), r)
    r = re.sub(r"^comm=(.*?) pid=", lambda x: "comm=%s pid=" % c(x[1]), r)
    return "%16s %5s [%s] %15s: %24s: %s" % (c(m[1]), m[2], m[3], m[4], m[5], r)


# ---- perf.data
def scrub_perf(src, dst, keep, t0=None, t1=None):
    d = open(src, "rb").read()
    assert d[:8] == b"PERFILE2"
    size, asz, ao, asize, do, dsize, eo, esize = struct.unpack_from("<8Q", d, 8)
    flags = list(struct.unpack_from("<4Q", d, 72))
    feats = [i for i in range(256) if flags[i // 64] >> (i % 64) & 1]
    secs = {f: struct.unpack_from("<QQ", d, do + dsize + 16 * k) for k, f in enumerate(feats)}
    nattr = asize // asz
    out = bytearray()
    body = d[do : do + dsize]
    p = 0
    n = 0
    # all tracepoint attrs share one sample_type here: IP|TID|TIME|CPU|PERIOD|RAW|IDENTIFIER
    formats = {}
    while p + 8 <= len(body):
        ty, misc, sz = struct.unpack_from("<IHH", body, p)
        r = bytearray(body[p : p + sz])
        p += sz if sz else 8
        if ty in (1, 10, 17, 18, 73, 67, 16, 20, 21):
            continue  # mmaps, symbols, namespaces, ...
        if ty in (3,):
            nm = bytes(r[16:]).split(b"\0")[0]
            if nm not in keep and not KT.match(nm):
                continue
        if ty in (4, 7):
            continue
        if ty == 9:
            off = 8 + 8 + 8  # identifier, ip
            pid, tid = struct.unpack_from("<II", r, off)
            time_ = struct.unpack_from("<Q", r, off + 8)[0]
            if t0 and not (t0 - 5_000_000 <= time_ <= t1 + 2_000_000):
                continue
            ro = off + 8 + 8 + 8 + 8
            rs = struct.unpack_from("<I", r, ro)[0]
            raw = ro + 4
            n += 1
            for o in fields(struct.unpack_from("<H", r, raw)[0], rs):
                r[raw + o : raw + o + 16] = cname(bytes(r[raw + o : raw + o + 16]), keep)
            dynscrub(r, raw, keep)
        out += r
    keepf = [
        f for f in feats if f in (1, 6, 7, 12, 23)
    ]  # tracing data, arch, nrcpus, event desc, clockid
    hdr = bytearray(d[:do])
    fl = [0] * 4
    for f in keepf:
        fl[f // 64] |= 1 << (f % 64)
    struct.pack_into("<4Q", hdr, 72, *fl)
    struct.pack_into("<QQ", hdr, 8 + 32, do, len(out))
    blob = bytes(hdr) + bytes(out)
    pos = len(blob) + 16 * len(keepf)
    tab = b""
    sec = b""
    for f in keepf:
        o, s = secs[f]
        b = d[o : o + s]
        if f == 1:
            b = scrub_tracing(b, keep)
        tab += struct.pack("<QQ", pos, len(b))
        sec += b
        pos += len(b)
    open(dst, "wb").write(blob + tab + sec)
    return n


FIELDS = {}


def load_formats():
    for e in (
        "sched_switch",
        "sched_wakeup",
        "sched_wakeup_new",
        "sched_waking",
        "sched_migrate_task",
        "sched_process_fork",
        "sched_process_exit",
    ):
        t = open("/sys/kernel/tracing/events/sched/%s/format" % e).read()
        i = int(re.search(r"^ID: (\d+)", t, re.M)[1])
        FIELDS[i] = (
            [int(m[2]) for m in re.finditer(r"field:char (\w+)\[16\];\s*offset:(\d+);", t)],
            [
                int(m[2])
                for m in re.finditer(r"field:__data_loc char\[\] (\w+);\s*offset:(\d+);", t)
            ],
        )


def fields(i, rs):
    return FIELDS.get(i, ([], []))[0]


def dynscrub(r, raw, keep):
    i = struct.unpack_from("<H", r, raw)[0]
    for o in FIELDS.get(i, ([], []))[1]:
        v = struct.unpack_from("<I", r, raw + o)[0]
        a, ln = v & 0xFFFF, v >> 16
        s = bytes(r[raw + a : raw + a + ln])
        t = s.split(b"\0")[0]
        if t and t not in keep and not KT.match(t):
            r[raw + a : raw + a + ln] = b"stranger"[: max(0, ln - 1)].ljust(ln, b"\0")


def scrub_tracing(b, keep):
    # the saved pid->comm list at the end: "pid comm\n" lines
    i = b.rfind(b"\n%d " % 0)  # fallback

    def rep(m):
        nm = m[2]
        if nm in keep or KT.match(nm):
            return m[0]
        return m[1] + (b"stranger"[: len(nm)]).ljust(len(nm), b"_") + b"\n"

    return re.sub(rb"(?m)^(\d+ )([^\n]{1,15})\n", rep, b)


# ---- trace.dat (version 6)
def write_tracedat(dst, raw, comms, keep):
    T = "/sys/kernel/tracing/events/"
    rd = lambda p: open(p, "rb").read()
    o = io.BytesIO()
    w = o.write
    w(b"\x17\x08\x44tracing" + b"6\0" + b"\0" + b"\x08" + struct.pack("<I", 4096))
    for n in ("header_page", "header_event"):
        x = rd(T + n)
        w(n.encode() + b"\0" + struct.pack("<Q", len(x)) + x)
    w(struct.pack("<I", 0))
    ev = (
        "sched_switch",
        "sched_wakeup",
        "sched_wakeup_new",
        "sched_waking",
        "sched_migrate_task",
        "sched_process_fork",
        "sched_process_exit",
    )
    w(struct.pack("<I", 1) + b"sched\0" + struct.pack("<I", len(ev)))
    for e in ev:
        x = rd(T + "sched/" + e + "/format")
        w(struct.pack("<Q", len(x)) + x)
    w(struct.pack("<I", 0))
    w(struct.pack("<I", 0))
    c = b"".join(b"%d %s\n" % (p, n) for p, n in sorted(comms.items()))
    w(struct.pack("<Q", len(c)) + c)
    cpus = sorted(raw)
    w(struct.pack("<I", len(cpus)))
    w(b"options  \0" + struct.pack("<H", 0))
    w(b"flyrecord\0")
    base = o.tell() + 16 * len(cpus)
    base = (base + 4095) // 4096 * 4096
    pos = base
    tab = b""
    for k in cpus:
        tab += struct.pack("<QQ", pos, len(raw[k]))
        pos += len(raw[k])
    w(tab)
    w(b"\0" * (base - o.tell()))
    for k in cpus:
        w(scrub_pages(raw[k], keep))
    open(dst, "wb").write(o.getvalue())


def scrub_pages(data, keep):
    out = bytearray()
    for off in range(0, len(data), 4096):
        pg = bytearray(data[off : off + 4096])
        ts, commit = struct.unpack_from("<QQ", pg)
        end = 16 + (commit & 0xFFFFF)
        p = 16
        while p + 4 <= end:
            h = struct.unpack_from("<I", pg, p)[0]
            tl = h & 31
            if tl == 29:
                if h >> 5 == 0:
                    break
                p += 4 + struct.unpack_from("<I", pg, p + 4)[0]
                continue
            if tl in (30, 31):
                p += 8
                continue
            if tl == 0:
                ln = struct.unpack_from("<I", pg, p + 4)[0] - 4
                q = p + 8
            else:
                ln = tl * 4
                q = p + 4
            for o in fields(struct.unpack_from("<H", pg, q)[0], 0):
                pg[q + o : q + o + 16] = cname(bytes(pg[q + o : q + o + 16]), keep)
            dynscrub(pg, q, keep)
            p = q + ln
        for i in range(end, len(pg)):
            pg[i] = 0
        out += pg
    return bytes(out)


load_formats()
