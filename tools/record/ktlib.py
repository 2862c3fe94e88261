"""Shared helpers: run one case, parse `perf script` text, compute metrics."""

import copy, json, os, re, subprocess, sys, time, math, statistics as st

CG = "/sys/fs/cgroup/cpu"
EVENTS = [
    "sched_switch",
    "sched_wakeup",
    "sched_wakeup_new",
    "sched_waking",
    "sched_migrate_task",
    "sched_process_fork",
    "sched_process_exit",
]
HERE = os.path.dirname(os.path.abspath(__file__))
EDGES = [
    0,
    10,
    20,
    50,
    100,
    200,
    500,
    1000,
    1400,
    2000,
    2800,
    3500,
    4500,
    6000,
    7000,
    9000,
    11000,
    13000,
    15000,
    17000,
    21000,
    25000,
    33000,
    50000,
]
LINE = re.compile(r"^\s*(.*?)\s+(-?\d+)\s+\[(\d+)\]\s+(\d+)\.(\d+):\s+sched:(\w+):\s?(.*)$")
SW = re.compile(
    r"prev_comm=(.*) prev_pid=(-?\d+) prev_prio=(-?\d+) prev_state=(\S+) ==> next_comm=(.*) next_pid=(-?\d+) next_prio=(-?\d+)"
)
WK = re.compile(r"comm=(.*) pid=(\d+) prio=(-?\d+) target_cpu=(\d+)")
MG = re.compile(r"comm=(.*) pid=(\d+) prio=(-?\d+) orig_cpu=(\d+) dest_cpu=(\d+)")
FK = re.compile(r"comm=(.*) pid=(\d+) child_comm=(.*) child_pid=(\d+)")


def write(p, v):
    with open(p, "w") as f:
        f.write(str(v))


def cg_path(n):
    return CG + "/kt" + ("" if n == "/" else n)


def make_cgroups(case):
    made = []
    for g in case.get("cgroups", []):
        p = cg_path(g["path"])
        parts = p[len(CG) + 1 :].split("/")
        q = CG
        for s in parts:
            q += "/" + s
            if not os.path.isdir(q):
                os.mkdir(q)
                made.append(q)
        if "shares" in g:
            write(p + "/cpu.shares", g["shares"])
        if g.get("idle"):
            write(p + "/cpu.idle", 1)
    # quotas: parents first, so that a child's ratio never exceeds its parent's
    for g in sorted(case.get("cgroups", []), key=lambda g: g["path"].count("/")):
        p = cg_path(g["path"])
        if "quota_us" in g:
            write(p + "/cpu.cfs_period_us", g.get("period_us", 100000))
            write(p + "/cpu.cfs_quota_us", g["quota_us"])
            if g.get("burst_us"):
                write(p + "/cpu.cfs_burst_us", g["burst_us"])
    return made


def rm_cgroups(made):
    for p in reversed(made):
        for _ in range(50):
            try:
                os.rmdir(p)
                break
            except OSError:
                time.sleep(0.02)
        else:
            print("LEFT", p)


def flatten(steps):
    out = []
    for s in steps:
        ((k, v),) = (
            [(k, v) for k, v in s.items() if k != "body"][:1]
            if isinstance(s, dict)
            else [(s, None)]
        )
        if k == "loop":
            out += ["loop:%d" % v] + flatten(s["body"]) + ["end"]
        elif k == "hog":
            out.append("hog")
        elif k == "run_us":
            out.append("run:%d" % round(v * 1000))
        elif k == "sleep_us":
            out.append("sleep:%d" % v)
        elif k == "period_us":
            out.append("period:%d" % v)
        elif k == "until_us":
            out.append("until:%d" % v)
        elif k == "set_nice":
            out.append("nice:%d" % v)
        elif k == "set_affinity":
            out.append("aff:%d" % mask(v))
        elif k == "set_cgroup":
            out.append("move:" + cg_tasks(v))
        elif k == "spawn":
            out.append("spawn:%d,%d" % (v["sleep_us"], v["run_us"]))
        elif k in ("yield", "exit"):
            out.append(k)
        else:
            out.append("%s:%d" % (k, v))  # read, write, wait, post, barrier
    return out


def mask(l):
    return sum(1 << c for c in l) if l else 0


def cg_tasks(n):
    return "-" if n in (None, "/") else cg_path(n) + "/tasks"


POL = {"other": 0, "batch": 3, "idle": 5}


def cpus_used(case):
    return {c for t in case["tasks"] for c in (t.get("affinity") or [0, 1])} | (
        {0, 1} if case.get("kids") else set()
    )


def spec_text(case):
    o = ["duration %d" % case["duration_us"], "settle %d" % case.get("settle_ms", 250)]
    if cpus_used(case) == {1}:
        o.append("push 1")
    for b, n in case.get("barriers", {}).items():
        o.append("barrier %s %d" % (b, n))
    if "sampler" in case:
        o.append("sample %d %d" % (case["sampler"]["cpu"], case["sampler"]["every_us"]))
    for g in case.get("cgroups", []):
        o.append("statfile " + cg_path(g["path"]) + "/cpu.stat")
    for e in sorted(case.get("events", []), key=lambda e: e["at_us"]):
        o.append(
            "event %d %s %s" % (e["at_us"], cg_path(e["cgroup"]) + "/" + e["file"], e["value"])
        )
    for t in case["tasks"]:
        o.append(
            " ".join(
                [
                    "task",
                    t["name"],
                    str(t.get("nice", 0)),
                    cg_tasks(t.get("cgroup")),
                    str(mask(t.get("affinity"))),
                    str(POL[t.get("policy", "other")]),
                    str(t.get("slice_us", 0) * 1000),
                    str(t.get("start_us", 0)),
                ]
                + flatten(t["program"])
            )
        )
    return "\n".join(o) + "\n"


def busy_now(ms=120):
    def rd():
        v = [int(x) for x in open("/proc/stat").readline().split()[1:]]
        return v[0] + v[1] + v[2] + v[5] + v[6]

    a = rd()
    time.sleep(ms / 1000)
    return rd() - a  # jiffies of 10 ms on 2 CPUs


def quiet():
    return busy_now() <= 1 and busy_now(80) <= 1


def pct(v, p):
    v = sorted(v)
    return v[min(len(v) - 1, int(math.ceil(p / 100 * len(v)) - 1))] if v else None


def dist(v):
    if not v:
        return {"n": 0}
    return {
        "n": len(v),
        "mean": round(sum(v) / len(v), 3),
        "p50": round(pct(v, 50), 3),
        "p90": round(pct(v, 90), 3),
        "p99": round(pct(v, 99), 3),
        "max": round(max(v), 3),
    }


def hist(v):
    h = [0] * len(EDGES)
    for x in v:
        i = len(EDGES) - 1
        while EDGES[i] > x:
            i -= 1
        h[i] += 1
    return h


def parse(text):
    ev = []
    for l in text.splitlines():
        m = LINE.match(l)
        if not m:
            continue
        t = int(m[4]) * 10**9 + int(m[5].ljust(9, "0"))
        n = m[6]
        r = m[7]
        cpu = int(m[3])
        if n == "sched_switch":
            s = SW.search(r)
            if s:
                ev.append((t, "sw", cpu, int(s[2]), s[4], int(s[6]), s[1], s[5]))
        elif n in ("sched_wakeup", "sched_wakeup_new", "sched_waking"):
            s = WK.search(r)
            if s:
                ev.append(
                    (
                        t,
                        {"sched_wakeup": "wk", "sched_wakeup_new": "wn", "sched_waking": "wg"}[n],
                        cpu,
                        int(s[2]),
                        int(s[4]),
                        s[1],
                        int(m[2]),
                    )
                )
        elif n == "sched_migrate_task":
            s = MG.search(r)
            if s:
                ev.append((t, "mg", cpu, int(s[2]), int(s[4]), int(s[5]), s[1]))
        elif n == "sched_process_fork":
            s = FK.search(r)
            if s:
                ev.append((t, "fk", cpu, int(s[2]), int(s[4]), s[3]))
    ev.sort(key=lambda e: e[0])
    return ev


def analyse(ev, t0, t1, names, groups=None, by_comm=None):
    """names: tid -> task name. Window [t0,t1) in ns. Returns dict of metrics."""
    cur = {}
    since = {}
    wake = {}
    T = {}

    def task(n):
        return T.setdefault(
            n,
            {
                "cpu": 0.0,
                "percpu": {},
                "vol": 0,
                "invol": 0,
                "mig": 0,
                "wakeups": 0,
                "lat": [],
                "sl": [],
                "off": [],
                "lastout": None,
                "wcpu": {},
                "wnew": {},
            },
        )

    for n in names.values():
        task(n)
    foreign = {}
    fnames = {}
    nsw = {}
    idle = {}

    def acct(cpu, a, b):
        tid = cur.get(cpu)
        if tid is None:
            return
        a2, b2 = max(a, t0), min(b, t1)
        if b2 <= a2:
            return
        d = (b2 - a2) / 1000
        if tid in names:
            k = task(names[tid])
            k["cpu"] += d
            k["percpu"][cpu] = k["percpu"].get(cpu, 0) + d
        elif tid == 0:
            idle[cpu] = idle.get(cpu, 0) + d
        else:
            foreign[cpu] = foreign.get(cpu, 0) + d
            fnames[comm.get(tid, "?")] = fnames.get(comm.get(tid, "?"), 0) + d

    comm = {}
    gaps = [0]
    unseen = {}
    unseen_foreign = {}
    for e in ev:
        t, k, cpu = e[0], e[1], e[2]
        if k == "sw":
            _, _, _, pp, state, np_, pc, nc = e
            comm[pp] = pc
            comm[np_] = nc
            if cpu not in cur:
                cur[cpu] = pp
                since[cpu] = ev[0][0]
            skip = False
            if cur[cpu] != pp:  # a switch cur -> pp was not recorded (see README.md, "Blind spots")
                gaps[0] += t0 <= t < t1
                w0 = wake.pop(pp, None)
                if cur[cpu] == 0:
                    if w0 and w0 > since[cpu]:
                        acct(cpu, since[cpu], w0)
                        since[cpu] = w0
                    else:
                        unseen[cpu] = (
                            unseen.get(cpu, 0) + max(0, min(t, t1) - max(since[cpu], t0)) / 1000
                        )
                        since[cpu] = t
                        skip = True
                else:
                    unseen_foreign[cpu] = (
                        unseen_foreign.get(cpu, 0) + max(0, min(t, t1) - max(since[cpu], t0)) / 1000
                    )
                cur[cpu] = pp
                if pp in names:
                    task(names[pp])["lastout"] = None
            acct(cpu, since[cpu], t)
            inw = t0 <= t < t1
            if pp in names:
                x = task(names[pp])
                if inw:
                    if state.startswith("R"):
                        x["invol"] += 1
                    else:
                        x["vol"] += 1
                    if since[cpu] >= t0 and not skip:
                        x["sl"].append((t - since[cpu]) / 1000)
                x["lastout"] = t if state.startswith("R") else None
            if inw:
                nsw[cpu] = nsw.get(cpu, 0) + 1
            if np_ in names:
                x = task(names[np_])
                if np_ in wake:
                    w = wake.pop(np_)
                    if w >= t0 and t < t1:
                        x["lat"].append((t - w) / 1000)
                elif x["lastout"] and inw:
                    x["off"].append((t - x["lastout"]) / 1000)
            cur[cpu] = np_
            since[cpu] = t
        elif k in ("wk", "wn"):
            tid = e[3]
            comm[tid] = e[5]
            if by_comm and k == "wn" and tid not in names:
                names[tid] = by_comm(e[5])
            if tid in names:
                wake.setdefault(tid, t)
                if t0 <= t < t1:
                    x = task(names[tid])
                    x["wakeups"] += 1
                    d = x["wcpu"] if k == "wk" else x["wnew"]
                    d[e[4]] = d.get(e[4], 0) + 1
        elif k == "mg":
            if e[3] in names and t0 <= t < t1:
                task(names[e[3]])["mig"] += 1
        elif k == "fk":
            if by_comm and e[3] in names and e[4] not in names:
                names[e[4]] = by_comm(e[5])
    for c in list(cur):
        acct(c, since[c], max(t1, since[c]))
    W = (t1 - t0) / 1000
    out = {
        "window_us": W,
        "tasks": {},
        "cpus": {},
        "foreign_us": {str(c): round(v, 1) for c, v in foreign.items()},
        "foreign_top": {k: round(v, 1) for k, v in sorted(fnames.items(), key=lambda x: -x[1])[:4]},
    }
    out["unrecorded_switches"] = gaps[0]
    out["unseen_us"] = {
        str(c): round(v, 1) for c, v in unseen.items()
    }  # idle or running, cannot be told
    out["attributed_us"] = {
        str(c): round(v, 1) for c, v in unseen_foreign.items()
    }  # given to the task seen next on that CPU
    tot = sum(x["cpu"] for x in T.values()) or 1
    for n, x in T.items():
        out["tasks"][n] = {
            "cpu_us": round(x["cpu"], 1),
            "cpu_share_of_workload": round(x["cpu"] / tot, 6),
            "cpu_us_by_cpu": {str(c): round(v, 1) for c, v in sorted(x["percpu"].items())},
            "switches_voluntary": x["vol"],
            "switches_involuntary": x["invol"],
            "migrations": x["mig"],
            "wakeups": x["wakeups"],
            "wakeup_target_cpu": {str(c): v for c, v in sorted(x["wcpu"].items())},
            "wakeup_new_target_cpu": {str(c): v for c, v in sorted(x["wnew"].items())},
            "wakeup_latency_us": dist(x["lat"]),
            "on_cpu_us": dist(x["sl"]),
            "on_cpu_hist": hist(x["sl"]),
            "preempted_wait_us": dist(x["off"]),
        }
    for c in sorted(set(list(nsw) + list(idle) + list(cur))):
        out["cpus"][str(c)] = {
            "switches": nsw.get(c, 0),
            "idle_us": round(idle.get(c, 0), 1),
            "foreign_us": round(foreign.get(c, 0), 1),
            "workload_us": round(sum(x["percpu"].get(c, 0) for x in T.values()), 1),
        }
    if groups:
        out["groups"] = {}
        for n, g in groups.items():
            while True:
                d = out["groups"].setdefault(g, {"cpu_us": 0.0})
                d["cpu_us"] = round(d["cpu_us"] + T[n]["cpu"], 1)
                if g == "/":
                    break
                g = g.rsplit("/", 1)[0] or "/"
        for d in out["groups"].values():
            d["cpu_share_of_workload"] = round(d["cpu_us"] / tot, 6)
    return out


def parse_stat(txt):
    return {l.split()[0]: int(l.split()[1]) for l in txt.strip().split("\n") if len(l.split()) == 2}


def parse_sched(txt):
    o = {}
    for l in txt.split("\n"):
        if " : " in l:
            k, v = l.split(" : ", 1)
            k = k.strip()
            v = v.strip()
            try:
                o[k] = float(v) if "." in v else int(v)
            except ValueError:
                pass
    return o


KEEP = [
    "se.vruntime",
    "se.sum_exec_runtime",
    "se.nr_migrations",
    "nr_switches",
    "nr_voluntary_switches",
    "nr_involuntary_switches",
    "se.load.weight",
    "se.avg.load_avg",
    "se.avg.runnable_avg",
    "se.avg.util_avg",
    "se.avg.util_est",
    "se.slice",
]


def leaves(d, pre=""):
    for k, v in d.items():
        if isinstance(v, dict):
            yield from leaves(v, pre + k + "/")
        elif isinstance(v, (int, float)) and not isinstance(v, bool):
            yield pre + k, v
        elif isinstance(v, list) and v and all(isinstance(x, (int, float)) for x in v):
            for i, x in enumerate(v):
                yield "%s%s/%d" % (pre, k, i), x


def summarise(runs):
    acc = {}
    for r in runs:
        for k, v in leaves(r):
            acc.setdefault(k, []).append(v)
    out = {}
    for k, v in acc.items():
        v = v + [0] * (len(runs) - len(v)) if "/on_cpu_hist/" in k or "target_cpu" in k else v
        if "/on_cpu_hist/" in k and not any(v):
            continue
        out[k] = {
            "mean": round(sum(v) / len(v), 6),
            "stdev": round(st.stdev(v), 6) if len(v) > 1 else 0,
            "min": min(v),
            "max": max(v),
            "n": len(v),
        }
    return out


# ---- published layout


def machine():
    """What case.json says about this machine; a field that cannot be read is left out."""

    def text(path):
        try:
            with open(path) as f:
                return f.read().strip()
        except OSError:
            return None

    def number(path):
        try:
            return int(text(path) or "")
        except ValueError:
            return None

    tick_ns = round(time.clock_getres(6) * 1e9)  # CLOCK_MONOTONIC_COARSE advances once a tick
    found = {
        "cpus": os.cpu_count(),
        "description": "%d CPUs, %s" % (os.cpu_count(), os.uname().machine),
        "kernel": "Linux " + os.uname().release,
        "hz": round(1e9 / tick_ns),
        "tick_ns": tick_ns,
        "base_slice_ns": number("/sys/kernel/debug/sched/base_slice_ns"),
        "sched_features": text("/sys/kernel/debug/sched/features"),
        "cfs_bandwidth_slice_us": number("/proc/sys/kernel/sched_cfs_bandwidth_slice_us"),
    }
    return {k: v for k, v in found.items() if v is not None}


MACHINE = machine()


def pref(g):
    return "/" if g in (None, "/") else "/kt" + g


def conv_steps(steps):
    out = []
    for s in steps:
        if isinstance(s, str):
            out.append({s: True})
        else:
            s = dict(s)
            if "body" in s:
                s["body"] = conv_steps(s["body"])
            if "set_cgroup" in s:
                s["set_cgroup"] = pref(s["set_cgroup"])
            out.append(s)
    return out


def conv_case(c):
    o = {
        "format": "kernel-truth/1",
        "name": c["name"],
        "kind": c["kind"],
        "what": c["what"],
        "machine": MACHINE,
    }
    if "command" in c:
        o["command"] = c["command"]
        return o
    o["duration_us"] = c["duration_us"]
    o["settle_ms"] = c.get("settle_ms", 250)
    cg = []
    if c.get("cgroups"):
        cg.append({"path": "/kt", "shares": 1024})
    for g in c.get("cgroups", []):
        g = dict(g)
        g["path"] = pref(g["path"])
        if g.get("idle"):
            g["shares"] = "idle (cpu.idle = 1: weight 3)"
        cg.append(g)
    o["cgroups"] = cg
    o["tasks"] = []
    for t in c["tasks"]:
        o["tasks"].append(
            {
                "name": t["name"],
                "policy": t.get("policy", "other"),
                "nice": t.get("nice", 0),
                "slice_us": t.get("slice_us") or None,
                "affinity": t.get("affinity") or [0, 1],
                "cgroup": pref(t.get("cgroup")),
                "start_us": t.get("start_us", 0),
                "program": conv_steps(t["program"]),
            }
        )
    if c.get("barriers"):
        o["barriers"] = c["barriers"]
    if c.get("events"):
        o["events"] = [dict(e, cgroup=pref(e["cgroup"])) for e in c["events"]]
    if c.get("split_us"):
        o["phase_starts_us"] = [0] + c["split_us"]
    if c.get("sampler"):
        o["sampler"] = c["sampler"]
    return o


def fix_run(r, names_kernel=True):
    r = copy.deepcopy(r)
    r.pop("foreign_top", None)
    r.pop("lost_pages", None)
    if "groups" in r:
        r["groups"] = {pref(k) if k != "/" else "(all)": v for k, v in r["groups"].items()}
        for v in r["groups"].values():
            if "cpu_stat" in v:
                for k in list(v["cpu_stat"]):
                    if k in ("throttled_time", "burst_time"):
                        v["cpu_stat"][k + "_ns"] = v["cpu_stat"].pop(k)
    for t in r["tasks"].values():
        for k in ("on_cpu_hist",):
            t[k] = t.get(k, [])
    r["disturbance_pct"] = r.pop("foreign_pct", None)
    r["other_tasks_us"] = r.pop("foreign_us", {})
    for c in r["cpus"].values():
        c["other_us"] = c.pop("foreign_us", 0)
    return r
