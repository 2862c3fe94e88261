#!/usr/bin/env python3
"""Records cases on this machine (root needed).

    record.py FILE.json=DIR/cases ...     a case as in docs/truth.md
    record.py MODULE=DIR/cases ...        the lists CASES and PELT of a Python module (cases_public)

A directory DIR/cases/NAME is made for each. Environment: RUNS (5), ONLY (names), LIMIT and LIMIT2 (per cent of a CPU
that other tasks may take, cases on one and on two CPUs: 1 and 2), DEADLINE and RELAX (Unix time to end at, and from
which on a busy machine is accepted), SCRATCH (directory for temporary files).
"""

import importlib, subprocess, sys, os, time, json, gzip, lzma, shutil
import cases_json
from ktlib import *
from ftr import Ftrace

FT = None
PREFIX = []


def one_run(case, scratch, tracer="ftrace"):
    made = make_cgroups(case)
    try:
        spec = scratch + "/spec.txt"
        write(spec, spec_text(case))
        data = scratch + ("/perf.data" if tracer == "perf" else "/trace.dat")
        out = scratch + "/out.json"
        env = dict(os.environ)
        if case.get("sampler"):
            env["SAMPLES"] = scratch + "/samples.txt"
            if case["sampler"]["what"] == "debug":
                env["DBG_EVERY"] = "1"
        cmd = PREFIX + [HERE + "/ktload", spec]
        if tracer == "perf":
            cmd = [
                "perf",
                "record",
                "-q",
                "-a",
                "-e",
                ",".join("sched:" + e for e in EVENTS),
                "-k",
                "CLOCK_MONOTONIC",
                "-m",
                "8M",
                "-o",
                data,
                "--",
            ] + cmd
        else:
            FT.start()
        with open(out, "w") as fo:
            r = subprocess.run(cmd, stdout=fo, stderr=subprocess.PIPE, env=env, timeout=60)
        if tracer != "perf":
            FT.stop()
        err = r.stderr.decode()
        if err and tracer != "perf":
            print("   stderr:", err[:300])
        res = json.loads(open(out).read(), strict=False)
    finally:
        rm_cgroups(made)
    if tracer == "perf":
        return res, data, None, None
    text, lost = FT.text(FT.raw())
    names = {t["tid"]: t["name"] for t in res["tasks"]}
    groups = (
        {t["name"]: t.get("cgroup", "/") for t in case["tasks"]} if case.get("cgroups") else None
    )
    ev = parse(text)
    t0 = res["T0_ns"]
    t1 = t0 + res["duration_us"] * 1000
    by = (lambda c: "kids") if case.get("kids") else None
    kidok = None
    if by:
        parents = {t["tid"] for t in res["tasks"]}
        kidok = dict(names)
        for e in ev:
            if e[1] == "fk" and e[3] in parents and t0 <= e[0] < t1:
                kidok[e[4]] = "kids"
        names = kidok
        if groups:
            groups["kids"] = spawner_group(case)
    m = analyse(ev, t0, t1, dict(names), groups)
    if case.get("split_us"):
        ed = [0] + case["split_us"] + [case["duration_us"]]
        m["phases"] = {
            str(i): {
                n: x["cpu_share_of_workload"]
                for n, x in analyse(ev, t0 + a * 1000, t0 + b * 1000, dict(names))["tasks"].items()
            }
            for i, (a, b) in enumerate(zip(ed, ed[1:]))
        }
    for e in res["end"]:
        s = parse_sched(e["sched"])
        x = m["tasks"].get(e["name"])
        if x is not None:
            x["iterations"] = e["iters"]
            x["kernel"] = {k: s[k] for k in KEEP if k in s}
    if case.get("cgroups"):
        for g in case["cgroups"]:
            f = cg_path(g["path"]) + "/cpu.stat"
            a = parse_stat(res["before"]["files"][f])
            b = parse_stat(res["after"]["files"][f])
            m.setdefault("groups", {}).setdefault(g["path"], {"cpu_us": 0.0})["cpu_stat"] = {
                k: b[k] - a.get(k, 0) for k in b
            }
    st0 = [int(x) for x in res["before"]["stat"].split("\n")[0].split()[1:]]
    st1 = [int(x) for x in res["after"]["stat"].split("\n")[0].split()[1:]]
    m["steal_us"] = (st1[7] - st0[7]) * 10000
    used = cpus_used(case)
    m["foreign_pct"] = round(
        max(100 * m["foreign_us"].get(str(c), 0) / m["window_us"] for c in used), 3
    )  # on the CPUs the case uses
    m["lost_pages"] = lost
    return res, data, text, m


def trim(text, t0, t1):
    o = []
    for l in text.splitlines():
        x = LINE.match(l)
        if x:
            t = int(x[4]) * 10**9 + int(x[5])
            if t0 - 3_000_000 <= t <= t1 + 1_000_000:
                o.append(l)
    return "\n".join(o) + "\n"


def spawner_group(case):
    """The group of the first task that creates threads: they begin there."""
    spawners = [t for t in case["tasks"] if "spawn" in json.dumps(t["program"])]
    return spawners[0].get("cgroup", "/") if spawners else "/"


def save(d, case, good, bad, n):
    if not good and not bad:
        print("NOT DONE", case["name"], "(no run succeeded)")
        return
    runs = (
        sorted(good, key=lambda r: r[0]) + sorted(bad, key=lambda r: r[0])[: max(0, n - len(good))]
    )
    os.makedirs(d, exist_ok=True)
    res = [fix_run(r[1]) for r in runs]
    cc = conv_case(case)
    if case.get("cgroups"):
        cc["notes"] = [
            "All groups of the case are children of /kt (shares 1024), which itself is a child of the root."
        ]
    json.dump(
        {
            "format": "kernel-truth/1",
            "case": case["name"],
            "hist_edges_us": EDGES,
            "runs": res,
            "summary": summarise(res),
        },
        open(d + "/result.json", "w"),
        separators=(",", ":"),
    )
    json.dump(cc, open(d + "/case.json", "w"), indent=1)
    best = runs[0]
    t0 = best[2]["T0_ns"]
    t1 = t0 + best[2]["duration_us"] * 1000
    for i, r in enumerate(runs):
        w0 = r[2]["T0_ns"]
        with gzip.open(d + "/run%d.script.txt.gz" % (i + 1), "wt", 9) as f:
            f.write(trim(r[3], w0, w0 + r[2]["duration_us"] * 1000))
        json.dump(
            {
                "T0_ns": w0,
                "T1_ns": w0 + r[2]["duration_us"] * 1000,
                "tids": {x["name"]: x["tid"] for x in r[2]["tasks"]},
            },
            open(d + "/run%d.window.json" % (i + 1), "w"),
        )
    if best[5]:
        with gzip.open(d + "/run1.samples.txt.gz", "wt", 9) as f:
            f.write(best[5])
    print(
        "%s %-26s good %d bad %d  disturbance%% %s"
        % (time.strftime("%T"), case["name"], len(good), len(bad), [round(r[0], 2) for r in runs]),
        flush=True,
    )


def cases_of(source):
    if source.endswith(".json"):
        return [cases_json.load(source)]
    module = importlib.import_module(source)
    return module.CASES + module.PELT


def main():
    if len(sys.argv) < 2 or any("=" not in a for a in sys.argv[1:]):
        sys.exit(__doc__)
    global FT
    n = int(os.environ.get("RUNS", 5))
    lim = float(os.environ.get("LIMIT", 1.0))
    deadline = float(os.environ.get("DEADLINE", time.time() + 3600))
    only = os.environ.get("ONLY", "").split()
    scratch = os.environ.get("SCRATCH", "kt-scratch")
    os.makedirs(scratch, exist_ok=True)
    FT = Ftrace(EVENTS)
    todo = []
    for a in sys.argv[1:]:
        mod, out = a.split("=")
        for c in cases_of(mod):
            if only and c["name"] not in only:
                continue
            if not os.path.exists(out + "/" + c["name"] + "/result.json"):
                todo.append([out + "/" + c["name"], c, [], [], 0])
    relax = float(os.environ.get("RELAX", deadline))
    todo.sort(key=lambda j: cpus_used(j[1]) != {1} or "sampler" in j[1])
    while todo and time.time() < deadline:
        prog = False
        for job in list(todo):
            d, case, good, bad, rounds = job
            if time.time() > deadline:
                break
            both = cpus_used(case) != {1} or case.get("sampler")
            if both and not quiet() and time.time() < relax:
                continue
            job[4] += 1
            tries = 0
            while len(good) < n and tries < n + 2 and time.time() < deadline:
                tries += 1
                prog = True
                if both and not quiet() and time.time() < relax:
                    time.sleep(0.3)
                    continue
                try:
                    res, data, text, m = one_run(case, scratch)
                except Exception as e:
                    print("  failed:", case["name"], repr(e), flush=True)
                    continue
                q = m["foreign_pct"] + m["steal_us"] / m["window_us"] * 100
                smp = open(scratch + "/samples.txt").read() if case.get("sampler") else None
                (
                    good
                    if q <= (float(os.environ.get("LIMIT2", 2)) if both else lim)
                    and not m["lost_pages"]
                    else bad
                ).append((q, m, res, text, 0, smp))
            if len(good) >= n or job[4] >= 4:
                save(d, case, good, bad, n)
                todo.remove(job)
        if not prog:
            time.sleep(1)
    for d, case, good, bad, r in todo:
        if good or bad:
            save(d, case, good, bad, n)
        else:
            print("NOT DONE", case["name"])


if __name__ == "__main__":
    try:
        main()
    finally:
        if FT:
            FT.close()
