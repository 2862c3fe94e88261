#!/usr/bin/env python3
"""overhead.py OUT.json: unit costs for a cost model (untraced)."""

import json, os, re, subprocess, sys, time, statistics as st
from ktlib import *

M = HERE + "/micro"
OUT = sys.argv[1]
R = {"runs": {}}


def q(maxs=20):
    t = time.time()
    while time.time() - t < maxs:
        if busy_now(100) <= 0:
            return True
    return False


def rec(key, val, extra=None, ok=True):
    R["runs"].setdefault(key, []).append({"value": val, "quiet": ok, **(extra or {})})


def micro(key, test, a, b, n, cg=None, reps=5, field="ns_per_op"):
    for _ in range(reps):
        ok = q(1.5)
        o = json.loads(
            subprocess.run(
                [M, test, str(a), str(b), str(n)] + ([cg] if cg else []),
                capture_output=True,
                timeout=60,
            ).stdout
        )
        rec(
            key,
            o.get(field),
            {k: v for k, v in o.items() if k not in (field, "test", "cpu_a", "cpu_b")},
            ok,
        )
    v = [x["value"] for x in R["runs"][key] if x["value"] is not None]
    if v and isinstance(v[0], (int, float)):
        print(
            "%-44s mean %10.1f sd %8.1f min %10.1f" % (key, st.mean(v), st.pstdev(v), min(v)),
            flush=True,
        )
    else:
        print(key, R["runs"][key][0], flush=True)


def cmd(key, c, rx, reps=5):
    for _ in range(reps):
        ok = q(1.5)
        t = subprocess.run(
            c, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60
        ).stdout.decode()
        m = re.search(rx, t)
        rec(key, float(m[1]) if m else None, None, ok)
    v = [x["value"] for x in R["runs"][key] if x["value"] is not None]
    if v:
        print(
            "%-44s mean %10.3f sd %8.3f min %10.3f" % (key, st.mean(v), st.pstdev(v), min(v)),
            flush=True,
        )


sel = sys.argv[2:] or ["base", "depth", "many"]
if "base" in sel:
    micro("syscall_getppid_ns", "syscall", 1, 1, 1000000)
    micro("sched_yield_alone_ns", "yieldalone", 1, 1, 500000)
    micro("futex_wake_none_ns", "futexwakenone", 1, 1, 500000)
    micro("pipe_write_read_self_ns", "pipeself", 1, 1, 300000)
    micro("yield_two_threads_same_cpu_ns_per_yield_pair", "yield", 1, 1, 200000)
    micro("pipe_roundtrip_same_cpu_threads_ns", "pipe", 1, 1, 60000)
    micro("pipe_roundtrip_same_cpu_processes_ns", "pipeproc", 1, 1, 60000)
    micro("pipe_roundtrip_two_cpus_threads_ns", "pipe", 1, 0, 30000)
    micro("pipe_roundtrip_two_cpus_processes_ns", "pipeproc", 1, 0, 30000)
    micro("pipe_roundtrip_unpinned_threads_ns", "pipe", -1, -1, 30000)
    micro("eventfd_roundtrip_same_cpu_ns", "eventfd", 1, 1, 60000)
    micro("eventfd_roundtrip_two_cpus_ns", "eventfd", 1, 0, 30000)
    micro("futex_roundtrip_same_cpu_ns", "futex", 1, 1, 60000)
    micro("futex_roundtrip_two_cpus_ns", "futex", 1, 0, 30000)
    micro(
        "wake_latency_idle_cpu_to_other_idle_cpu_p50",
        "wakeidle",
        1,
        0,
        2000,
        field="wake_latency_ns",
    )
    micro("wake_latency_same_cpu_p50", "wakeidle", 1, 1, 2000, field="wake_latency_ns")
    micro("nanosleep_200us_oversleep", "nanosleep", 1, 1, 2000, field="oversleep_ns")
    micro("atomic_fetch_add_private_ns", "atomic", 1, 1, 5000000)
    micro("cache_line_pingpong_roundtrip_ns", "line", 1, 0, 1000000)
    micro("atomic_fetch_add_contended_ns_per_op_per_cpu", "contend", 1, 0, 5000000)
    micro("setaffinity_migrate_self_ns", "setaffinity", 1, 1, 5000)
    micro("thread_create_join_ns", "thread", -1, -1, 5000)
    micro("fork_exit_wait_ns", "fork", -1, -1, 1000)
    micro("cpu1_idle_machine_gaps_1s", "gaps", 1, 1, 1000, reps=5, field="lost_pct")
    micro("cpu0_idle_machine_gaps_1s", "gaps", 0, 0, 1000, reps=5, field="lost_pct")
    cmd(
        "perf_bench_sched_pipe_same_cpu_usecs_per_op",
        "taskset -c 1 perf bench sched pipe -l 60000",
        r"([\d.]+) usecs/op",
    )
    cmd(
        "perf_bench_sched_pipe_unpinned_usecs_per_op",
        "perf bench sched pipe -l 30000",
        r"([\d.]+) usecs/op",
    )
    cmd(
        "perf_bench_sched_messaging_g1_l100_s",
        "perf bench sched messaging -g 1 -l 100",
        r"Total time:\s+([\d.]+)",
    )
    cmd(
        "perf_bench_syscall_basic_usecs_per_op",
        "perf bench syscall basic -l 1000000",
        r"([\d.]+) usecs/op",
    )
if "depth" in sel:
    paths = []
    try:
        for d in range(0, 7):
            if d:
                if d == 1:
                    cur = CG + "/kt"
                else:
                    cur = paths[-1] + "/d%d" % d
                os.mkdir(cur)
                paths.append(cur)
            tf = (paths[-1] if d else CG) + "/tasks"
            micro("depth%d_pipe_roundtrip_same_cpu_ns" % d, "pipe", 1, 1, 60000, tf, reps=5)
            micro("depth%d_pipe_roundtrip_two_cpus_ns" % d, "pipe", 1, 0, 20000, tf, reps=5)
            micro("depth%d_yield_pair_same_cpu_ns" % d, "yield", 1, 1, 150000, tf, reps=5)
    finally:
        for c in reversed(paths):
            for _ in range(50):
                try:
                    os.rmdir(c)
                    break
                except OSError:
                    time.sleep(0.02)
    os.mkdir(CG + "/kt")
    try:
        write(CG + "/kt/cpu.cfs_period_us", 100000)
        write(CG + "/kt/cpu.cfs_quota_us", 400000)
        micro(
            "depth1_with_unreached_quota_pipe_roundtrip_same_cpu_ns",
            "pipe",
            1,
            1,
            60000,
            CG + "/kt/tasks",
            reps=5,
        )
    finally:
        time.sleep(0.05)
        os.rmdir(CG + "/kt")
if "many" in sel:
    base = CG + "/kt"
    os.mkdir(base)
    N = 10000
    made = []
    try:
        micro("many0_pipe_roundtrip_same_cpu_ns", "pipe", 1, 1, 60000, base + "/tasks", reps=5)
        micro("many0_pipe_roundtrip_two_cpus_ns", "pipe", 1, 0, 20000, base + "/tasks", reps=5)
        micro("many0_gaps_1s", "gaps", 1, 1, 1000, reps=4, field="lost_pct")
        t = time.time()
        for i in range(N):
            p = base + "/g%d" % i
            os.mkdir(p)
            made.append(p)
        rec("create_10000_cgroups_us_each", (time.time() - t) / N * 1e6)
        print("create us", R["runs"]["create_10000_cgroups_us_each"])
        time.sleep(1)
        micro("many10000_pipe_roundtrip_same_cpu_ns", "pipe", 1, 1, 60000, base + "/tasks", reps=5)
        micro("many10000_pipe_roundtrip_two_cpus_ns", "pipe", 1, 0, 20000, base + "/tasks", reps=5)
        micro("many10000_gaps_1s", "gaps", 1, 1, 1000, reps=4, field="lost_pct")
        t = time.time()  # touch each group once: a task enters it, runs a little, sleeps
        src = (
            "import os,sys\nfor i in range(%d):\n  f=open('%s/g%%d/tasks'%%i,'w'); f.write('0'); f.close()\nf=open('%s/tasks','w'); f.write('0'); f.close()"
            % (N, base, base)
        )
        subprocess.run(["taskset", "-c", "1", "python3", "-c", src])
        rec("visit_10000_cgroups_us_each", (time.time() - t) / N * 1e6)
        print("visit us", R["runs"]["visit_10000_cgroups_us_each"])
        micro(
            "many10000_visited_pipe_roundtrip_same_cpu_ns",
            "pipe",
            1,
            1,
            60000,
            base + "/tasks",
            reps=5,
        )
        micro("many10000_visited_gaps_1s", "gaps", 1, 1, 1000, reps=4, field="lost_pct")
    finally:
        t = time.time()
        for p in reversed(made):
            for _ in range(50):
                try:
                    os.rmdir(p)
                    break
                except OSError:
                    time.sleep(0.01)
        rec("remove_10000_cgroups_us_each", (time.time() - t) / N * 1e6)
        for _ in range(50):
            try:
                os.rmdir(base)
                break
            except OSError:
                time.sleep(0.02)
for k, v in R["runs"].items():
    n = [x["value"] for x in v if isinstance(x["value"], (int, float))]
    if n:
        R.setdefault("summary", {})[k] = {
            "mean": round(st.mean(n), 4),
            "stdev": round(st.stdev(n), 4) if len(n) > 1 else 0,
            "min": min(n),
            "max": max(n),
            "n": len(n),
        }
old = json.load(open(OUT)) if os.path.exists(OUT) else {"runs": {}, "summary": {}}
old["runs"].update(R["runs"])
old["summary"].update(R.get("summary", {}))
json.dump(old, open(OUT, "w"), indent=1)
