#!/usr/bin/env python3
"""ext.py MODULE-LIST=OUTDIR...: existing benchmarks, their own numbers (untraced runs) and scheduler events (traced runs)."""

import json, os, re, subprocess, sys, time, gzip
from ktlib import *
from ftr import Ftrace

SCH = os.environ.get("SCHBENCH", "schbench")


def num(rx, t, k=1, cast=float):
    m = re.search(rx, t, re.M)
    return cast(m[k]) if m else None


def p_hack(t):
    return {"time_s": num(r"Time:\s+([\d.]+)", t)}


def p_sysb(t):
    return {
        "events": num(r"total number of events:\s+(\d+)", t),
        "total_time_s": num(r"total time:\s+([\d.]+)s", t),
        "lat_avg_ms": num(r"avg:\s+([\d.]+)", t),
        "lat_p95_ms": num(r"95th percentile:\s+([\d.]+)", t),
        "lat_max_ms": num(r"^\s+max:\s+([\d.]+)", t),
        "fair_events_avg": num(r"events \(avg/stddev\):\s+([\d.]+)", t),
        "fair_events_stddev": num(r"events \(avg/stddev\):\s+[\d.]+/([\d.]+)", t),
        "fair_time_avg_s": num(r"execution time \(avg/stddev\):\s+([\d.]+)", t),
    }


def p_sch(t):
    i = t.rfind("Wakeup Latencies")
    t = t[i:]
    o = {}
    sec = None
    for l in t.split("\n"):
        m = re.match(r"(Wakeup Latencies|Request Latencies|RPS)", l)
        if m:
            sec = {"W": "wakeup_us", "Req": "request_us", "RPS": "rps"}[
                "W" if l[0] == "W" else "Req" if l.startswith("Req") else "RPS"
            ]
        m = re.match(r"\s*\*?\s*([\d.]+)th: (\d+)", l)
        if m and sec:
            o["%s_p%s" % (sec, m[1])] = int(m[2])
        m = re.match(r"average rps: ([\d.]+)", l)
        if m:
            o["average_rps"] = float(m[1])
    return o


def p_pipe(t):
    return {
        "total_s": num(r"Total time:\s+([\d.]+)", t),
        "usecs_per_op": num(r"([\d.]+) usecs/op", t),
    }


def p_msg(t):
    return {"total_s": num(r"Total time:\s+([\d.]+)", t)}


def p_fwake(t):
    return {"avg_wake_ms": num(r"Wokeup \d+ of \d+ threads in ([\d.]+) ms \(\+", t)}


def bench(name, kind, command, parse, what, **more):
    return dict(name=name, kind=kind, command=command, parse=parse, trace=True, what=what, **more)


SHARED = [
    bench(
        "x1-hackbench-g1-f4-l100",
        "bench-hackbench",
        "hackbench -g 1 -f 4 -l 100",
        p_hack,
        "hackbench (rt-tests), one group of 4 sender and 4 receiver processes over unix socket pairs: each sender writes 100 messages of 100 bytes to each of the 4 receivers (round robin, one write per receiver per loop); each receiver reads 400 messages. Processes are forked by the parent and wait on a pipe until all are ready.",
    ),
    bench(
        "x2-sysbench-threads",
        "bench-sysbench",
        "sysbench threads --threads=4 --thread-locks=2 --thread-yields=20 --events=400 --time=10 run",
        p_sysb,
        "sysbench threads: 4 threads take events from one counter; per event 20 times: lock mutex (i mod 2), sched_yield, unlock.",
    ),
    bench(
        "x3-sysbench-mutex",
        "bench-sysbench",
        "sysbench mutex --threads=4 --mutex-num=4 --mutex-locks=2000 --mutex-loops=2000 --time=10 run",
        p_sysb,
        "sysbench mutex: 4 threads, each 2000 times: run an empty loop of 2000 turns, lock a random one of 4 mutexes, increment, unlock.",
    ),
    bench(
        "x4-schbench-m1-t2",
        "bench-schbench",
        "schbench -m 1 -t 2 -r 2 -i 1 -w 0 -n 2",
        p_sch,
        "schbench: 1 message thread wakes 2 worker threads by futex; a worker sleeps ~100 us twice (think time), then does 2 matrix multiplications under a per-CPU lock, and records wake-up and request latency.",
        cutms=400,
    ),
    bench(
        "x6-perf-bench-pipe",
        "bench-pipe",
        "perf bench sched pipe -l 1500",
        p_pipe,
        "perf bench sched pipe: two processes, 1500 round trips of 4 bytes over two pipes, free to migrate.",
    ),
]
SHARED2 = [
    bench(
        "x5-futex-wake-8",
        "bench-futex",
        "perf bench -r 10 futex wake -t 8 -w 1",
        p_fwake,
        "perf bench futex wake: 8 threads block on one futex, the main thread wakes one per FUTEX_WAKE call until all are awake; 10 repeats.",
    ),
    bench(
        "x7-hackbench-g1-f4-l2000",
        "bench-hackbench",
        "hackbench -g 1 -f 4 -l 2000",
        p_hack,
        "As x1-hackbench-g1-f4-l100, with 2000 loops.",
        cutms=60,
    ),
    bench(
        "x8-sysbench-mutex-20000",
        "bench-sysbench",
        "sysbench mutex --threads=4 --mutex-num=1 --mutex-locks=20000 --mutex-loops=500 --time=10 run",
        p_sysb,
        "sysbench mutex: 4 threads, each 20000 times: an empty loop of 500 turns, then lock the one mutex, increment, unlock.",
        cutms=100,
    ),
]


def run_cmd(case):
    a = case["command"].split()
    a[0] = SCH if a[0] == "schbench" else a[0]
    t = time.monotonic_ns()
    r = subprocess.run(a, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    return r, t, time.monotonic_ns()


def quiet2(maxs=2):
    t = time.time()
    while time.time() - t < maxs:
        if busy_now() <= 1:
            return True
        time.sleep(0.2)
    return False


def main():
    ft = Ftrace(EVENTS, 16384)
    try:
        for a in sys.argv[1:]:
            lst, out = a.split("=")
            for case in globals()[lst]:
                d = out + "/" + case["name"]
                if os.path.exists(d + "/result.json"):
                    continue
                own = []
                for _ in range(int(os.environ.get("RUNS", 5))):
                    q = quiet2()
                    r, t0, t1 = run_cmd(case)
                    o = case["parse"](r.stdout.decode())
                    o["wall_s"] = (t1 - t0) / 1e9
                    o["quiet_before"] = q
                    own.append(o)
                tr = []
                texts = []
                for _ in range(5):
                    quiet2()
                    ft.start()
                    a_ = case["command"].split()
                    a_[0] = SCH if a_[0] == "schbench" else a_[0]
                    p = subprocess.Popen(a_, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                    so = p.communicate(timeout=60)[0]
                    ft.stop()
                    text, lost = ft.text(ft.raw())
                    ev = parse(text)
                    tree = {p.pid}
                    names = {p.pid: None}
                    for e in ev:
                        if e[1] == "fk" and e[3] in tree:
                            tree.add(e[4])
                            names[e[4]] = e[5]
                    comm = {}
                    for e in ev:
                        if e[1] == "sw":
                            if e[3] in tree:
                                comm[e[3]] = e[6]
                            if e[5] in tree:
                                comm[e[5]] = e[7]
                    ts = [e[0] for e in ev if e[1] == "sw" and (e[3] in tree or e[5] in tree)]
                    t0, t1 = ts[0], ts[-1] + 1
                    role = {}
                    for tid in sorted(tree):
                        role[tid] = "main" if tid == p.pid else "children"
                    m = analyse(ev, t0, t1, dict(role))
                    m["own"] = case["parse"](so.decode())
                    m["threads"] = len(tree)
                    m["lost_pages"] = lost
                    m["foreign_pct"] = round(
                        100 * sum(m["foreign_us"].values()) / m["window_us"], 3
                    )
                    tr.append((m["foreign_pct"], m, text, t0, t1, dict(comm), p.pid))
                tr.sort(key=lambda x: x[0])
                best = tr[0]
                os.makedirs(d, exist_ok=True)
                cut = best[3] + case["cutms"] * 10**6 if case.get("cutms") else best[4]
                lines = []
                for l in best[2].splitlines():
                    x = LINE.match(l)
                    if x and best[3] - 10**6 <= int(x[4]) * 10**9 + int(x[5]) <= cut:
                        lines.append(l)
                with gzip.open(d + "/run1.script.txt.gz", "wt", 9) as f:
                    f.write("\n".join(lines) + "\n")
                json.dump(
                    {"T0_ns": best[3], "T1_ns": best[4], "main_pid": best[6], "cut_ns": cut},
                    open(d + "/run1.window.json", "w"),
                )
                json.dump(
                    {k: v for k, v in case.items() if k != "parse"},
                    open(d + "/case.json", "w"),
                    indent=1,
                )
                json.dump(
                    {
                        "own_untraced_runs": own,
                        "own_summary": summarise(
                            [{k: v for k, v in o.items() if v is not None} for o in own]
                        ),
                        "runs": [t[1] for t in tr],
                        "summary": summarise([t[1] for t in tr]),
                        "hist_edges_us": EDGES,
                    },
                    open(d + "/result.json", "w"),
                )
                print(
                    time.strftime("%T"),
                    case["name"],
                    "foreign",
                    [t[0] for t in tr],
                    own[-1],
                    "size",
                    os.path.getsize(d + "/run1.script.txt.gz"),
                    flush=True,
                )
    finally:
        ft.close()


if __name__ == "__main__":
    main()
