"""Case definitions (the public part). Times in microseconds."""


def hog(name, nice=0, aff=None, cg="/", start=0, **k):
    return dict(name=name, nice=nice, affinity=aff, cgroup=cg, start_us=start, program=["hog"], **k)


def per(name, run, sleep, nice=0, aff=None, cg="/", start=0, **k):
    return dict(
        name=name,
        nice=nice,
        affinity=aff,
        cgroup=cg,
        start_us=start,
        program=[{"loop": -1, "body": [{"run_us": run}, {"sleep_us": sleep}]}],
        **k
    )


def clk(name, run, period, nice=0, aff=None, cg="/", start=0, **k):
    return dict(
        name=name,
        nice=nice,
        affinity=aff,
        cgroup=cg,
        start_us=start,
        program=[{"loop": -1, "body": [{"run_us": run}, {"period_us": period}]}],
        **k
    )


def prog(name, steps, nice=0, aff=None, cg="/", start=0, **k):
    return dict(name=name, nice=nice, affinity=aff, cgroup=cg, start_us=start, program=steps, **k)


def case(name, kind, what, tasks, dur=1200000, cgroups=(), **k):
    return dict(
        name=name, kind=kind, what=what, duration_us=dur, cgroups=list(cgroups), tasks=tasks, **k
    )


def loop(*b):
    return {"loop": -1, "body": list(b)}


C1 = [1]


def pingpong(a0, a1, dur=60000, work=0, extra=()):
    w = [{"run_us": work}] if work else []
    return [
        prog("ping", [loop(*w, {"write": 0}, {"read": 1})], aff=a0),
        prog("pong", [loop({"read": 0}, *w, {"write": 1})], aff=a1),
        *extra,
    ]


def one_against_four(name, shares):
    return case(
        name,
        "balance-groups",
        "Two CPUs; group A (%d) 1 hog, group B (1024) 4 hogs, all free to migrate." % shares,
        [hog("a0", cg="/A")] + [hog("b%d" % i, cg="/B", start=1000 * (i + 1)) for i in range(4)],
        dur=2400000,
        cgroups=[dict(path="/A", shares=shares), dict(path="/B", shares=1024)],
    )


CASES = [
    case(
        "a1-hogs-0-0",
        "hogs-one-cpu",
        "Two CPU hogs of nice 0 on one CPU.",
        [hog("hog0", 0, C1), hog("hog1", 0, C1, start=1000)],
    ),
    case(
        "a2-hogs-0-5",
        "hogs-one-cpu",
        "Two CPU hogs, nice 0 and 5, on one CPU.",
        [hog("hog0", 0, C1), hog("hog1", 5, C1, start=1000)],
        dur=1600000,
    ),
    case(
        "a3-hogs-m5-10",
        "hogs-one-cpu",
        "Two CPU hogs, nice -5 and 10, on one CPU.",
        [hog("hog0", -5, C1), hog("hog1", 10, C1, start=1000)],
        dur=2400000,
    ),
    case(
        "a4-hogs-0-3-m3",
        "hogs-one-cpu",
        "Three CPU hogs, nice 0, 3 and -3, on one CPU.",
        [hog("hog0", 0, C1), hog("hog1", 3, C1, start=1000), hog("hog2", -3, C1, start=2000)],
        dur=1600000,
    ),
    case(
        "a5-hogs-slice-3ms-12ms",
        "custom-slice",
        "Two nice-0 hogs on one CPU with own slices of 3 ms and 12 ms (sched_setattr sched_runtime).",
        [hog("short", 0, C1, slice_us=3000), hog("long", 0, C1, start=1000, slice_us=12000)],
    ),
    case(
        "a6-hog-batch",
        "policy-batch",
        "A SCHED_OTHER hog and a SCHED_BATCH hog of nice 0 on one CPU, and a SCHED_BATCH sleeper.",
        [
            hog("other", 0, C1),
            hog("batch", 0, C1, start=1000, policy="batch"),
            per("bsleep", 500, 5000, 0, C1, start=2000, policy="batch"),
        ],
    ),
    case(
        "b1-hog-run2-sleep8",
        "hog-and-sleeper",
        "One hog and one task that runs 2 ms and sleeps 8 ms, nice 0, one CPU.",
        [hog("hog", 0, C1), per("sleeper", 2000, 8000, 0, C1, start=5300)],
        dur=1600000,
    ),
    case(
        "b2-hog-run02-period5",
        "hog-and-sleeper",
        "One hog and one task that runs 0.2 ms in each 5 ms period, nice 0, one CPU.",
        [hog("hog", 0, C1), clk("sleeper", 200, 5000, 0, C1, start=5300)],
    ),
    case(
        "b3-2hogs-sleeper-m5",
        "hog-and-sleeper",
        "Two nice-0 hogs and one nice -5 task that runs 1 ms and sleeps 10 ms, one CPU.",
        [
            hog("hog0", 0, C1),
            hog("hog1", 0, C1, start=1000),
            per("sleeper", 1000, 10000, -5, C1, start=5300),
        ],
        dur=1600000,
    ),
    case(
        "b4-hog-sleeper-10",
        "hog-and-sleeper",
        "One nice-0 hog and one nice 10 task that runs 1 ms and sleeps 9 ms, one CPU.",
        [hog("hog", 0, C1), per("sleeper", 1000, 9000, 10, C1, start=5300)],
        dur=1600000,
    ),
    case(
        "b5-short-slice-sleeper",
        "custom-slice",
        "A hog with the default slice and a sleeper with a 0.2 ms slice (run 0.5 ms, sleep 4.7 ms), one CPU.",
        [hog("hog", 0, C1), per("sleeper", 500, 4700, 0, C1, start=5300, slice_us=200)],
    ),
    case(
        "b6-3-sleepers",
        "hog-and-sleeper",
        "Three periodic tasks (run 2 of 7, 3 of 11, 1 of 13 ms) on one CPU, no hog: 65 % load.",
        [
            clk("p7", 2000, 7000, 0, C1, start=1000),
            clk("p11", 3000, 11000, 0, C1, start=2000),
            clk("p13", 1000, 13000, 0, C1, start=3000),
        ],
    ),
    case(
        "c1-groups-1024-512-1-1",
        "groups-one-cpu",
        "One CPU, group A (shares 1024, 1 hog), group B (512, 1 hog).",
        [hog("a0", 0, C1, "/A"), hog("b0", 0, C1, "/B", start=1000)],
        dur=1600000,
        cgroups=[dict(path="/A", shares=1024), dict(path="/B", shares=512)],
    ),
    case(
        "c2-groups-1024-512-1-4",
        "groups-one-cpu",
        "One CPU, group A (1024, 1 hog), group B (512, 4 hogs).",
        [hog("a0", 0, C1, "/A")]
        + [hog("b%d" % i, 0, C1, "/B", start=1000 * (i + 1)) for i in range(4)],
        dur=2000000,
        cgroups=[dict(path="/A", shares=1024), dict(path="/B", shares=512)],
    ),
    case(
        "c3-nested-3-deep",
        "groups-nested",
        "One CPU; /P (1024) holds /P/Q (1024) and /P/R (512); /P/Q holds /P/Q/S (2048, 2 hogs) and /P/Q/T (1024, 1 hog nice 5); /P/R 1 hog; /X (512) 1 hog.",
        [
            hog("s0", 0, C1, "/P/Q/S"),
            hog("s1", 0, C1, "/P/Q/S", start=1000),
            hog("t0", 5, C1, "/P/Q/T", start=2000),
            hog("r0", 0, C1, "/P/R", start=3000),
            hog("x0", 0, C1, "/X", start=4000),
        ],
        dur=2400000,
        cgroups=[
            dict(path="/P", shares=1024),
            dict(path="/P/Q", shares=1024),
            dict(path="/P/R", shares=512),
            dict(path="/P/Q/S", shares=2048),
            dict(path="/P/Q/T", shares=1024),
            dict(path="/X", shares=512),
        ],
    ),
    case(
        "c4-root-hog-vs-group",
        "groups-one-cpu",
        "One CPU; one nice-0 hog outside any group (the root), group A (1024) with two hogs.",
        [
            hog("root", 0, C1),
            hog("a0", 0, C1, "/A", start=1000),
            hog("a1", 0, C1, "/A", start=2000),
        ],
        dur=1600000,
        cgroups=[dict(path="/A", shares=1024)],
    ),
    case(
        "c5-sleeper-in-group",
        "groups-one-cpu",
        "One CPU; group A (1024): a task that runs 1 ms and sleeps 6 ms and a hog; group B (1024): a hog.",
        [
            hog("ahog", 0, C1, "/A"),
            hog("bhog", 0, C1, "/B", start=1000),
            per("asleep", 1000, 6000, 0, C1, "/A", start=5300),
        ],
        dur=1600000,
        cgroups=[dict(path="/A", shares=1024), dict(path="/B", shares=1024)],
    ),
    case(
        "d1-3hogs-2cpus",
        "balance",
        "Three nice-0 hogs on two CPUs, free to migrate.",
        [hog("hog%d" % i, start=1000 * i) for i in range(3)],
        dur=2400000,
    ),
    one_against_four("d2-groups-1-4-equal", 1024),
    one_against_four("d3-groups-1-4-2to1", 2048),
    case(
        "d4-5hogs-nice-mix",
        "balance",
        "Five hogs of nice -5, 0, 0, 5, 5 on two CPUs.",
        [
            hog("m5", -5),
            hog("z0", 0, start=1000),
            hog("z1", 0, start=2000),
            hog("p0", 5, start=3000),
            hog("p1", 5, start=4000),
        ],
        dur=2400000,
    ),
    case(
        "d5-pull-from-one-cpu",
        "balance",
        "Two hogs start pinned on CPU 1; at 200 ms the second one allows itself both CPUs by sched_setaffinity and hogs on: time until it moves, and that nothing bounces afterwards.",
        [
            hog("hog0", 0, C1),
            prog(
                "hog1",
                [{"loop": 50, "body": [{"run_us": 2000}]}, {"set_affinity": [0, 1]}, "hog"],
                0,
                C1,
                start=1000,
            ),
        ],
        dur=1000000,
    ),
    case(
        "d6-4-periodic",
        "balance",
        "Four periodic tasks (run 3 ms, sleep 5 ms), free to migrate, on two CPUs.",
        [per("p%d" % i, 3000, 5000, start=700 * i) for i in range(4)],
        dur=1200000,
    ),
    case(
        "d7-pinned-plus-free",
        "balance",
        "One hog pinned on CPU 1 and two hogs free to migrate.",
        [hog("pin", 0, C1), hog("free0", start=1000), hog("free1", start=2000)],
        dur=2400000,
    ),
    case(
        "e1-quota-50of100-1t",
        "bandwidth",
        "Group A quota 50 ms per 100 ms, one hog on one CPU.",
        [hog("a0", 0, C1, "/A")],
        dur=2000000,
        cgroups=[dict(path="/A", shares=1024, quota_us=50000, period_us=100000)],
    ),
    case(
        "e2-quota-5of10-1t",
        "bandwidth",
        "Group A quota 5 ms per 10 ms, one hog on one CPU.",
        [hog("a0", 0, C1, "/A")],
        dur=1000000,
        cgroups=[dict(path="/A", shares=1024, quota_us=5000, period_us=10000)],
    ),
    case(
        "e3-quota-50of100-2t",
        "bandwidth",
        "Group A quota 50 ms per 100 ms, two hogs, each pinned on a CPU of its own.",
        [hog("a0", 0, [0], "/A"), hog("a1", 0, C1, "/A", start=1000)],
        dur=2000000,
        cgroups=[dict(path="/A", shares=1024, quota_us=50000, period_us=100000)],
    ),
    case(
        "e4-quota-5of10-4t",
        "bandwidth",
        "Group A quota 5 ms per 10 ms, four hogs free to migrate on two CPUs.",
        [hog("a%d" % i, 0, None, "/A", start=1000 * i) for i in range(4)],
        dur=1000000,
        cgroups=[dict(path="/A", shares=1024, quota_us=5000, period_us=10000)],
    ),
    case(
        "e5-burst",
        "bandwidth-burst",
        "Group A quota 20 ms per 100 ms, burst 20 ms; one task runs 35 ms in each 200 ms period, on one CPU.",
        [clk("a0", 35000, 200000, 0, C1, "/A", start=10000)],
        dur=2000000,
        cgroups=[dict(path="/A", shares=1024, quota_us=20000, period_us=100000, burst_us=20000)],
    ),
    case(
        "e6-no-burst",
        "bandwidth-burst",
        "The same as e5-burst, but without burst.",
        [clk("a0", 35000, 200000, 0, C1, "/A", start=10000)],
        dur=2000000,
        cgroups=[dict(path="/A", shares=1024, quota_us=20000, period_us=100000)],
    ),
    case(
        "e7-nested-quota",
        "bandwidth-nested",
        "/P quota 80 ms per 100 ms; /P/K quota 30 ms per 50 ms; one hog in /P/K on CPU 1, one hog in /P/L (no quota) on CPU 0.",
        [hog("k0", 0, C1, "/P/K"), hog("l0", 0, [0], "/P/L", start=1000)],
        dur=2000000,
        cgroups=[
            dict(path="/P", shares=1024, quota_us=80000, period_us=100000),
            dict(path="/P/K", shares=1024, quota_us=30000, period_us=50000),
            dict(path="/P/L", shares=1024),
        ],
    ),
    case(
        "e8-quota-vs-hog",
        "bandwidth",
        "One CPU; group A quota 20 ms per 50 ms with one hog, group B (no quota) with one hog, both shares 1024.",
        [hog("a0", 0, C1, "/A"), hog("b0", 0, C1, "/B", start=1000)],
        dur=1600000,
        cgroups=[
            dict(path="/A", shares=1024, quota_us=20000, period_us=50000),
            dict(path="/B", shares=1024),
        ],
    ),
    case(
        "f1-pipe-same-cpu",
        "pipe-ping-pong",
        "Pipe ping-pong of two threads on one CPU.",
        pingpong(C1, C1),
    ),
    case(
        "f2-pipe-two-cpus",
        "pipe-ping-pong",
        "Pipe ping-pong of two threads, each on its own CPU.",
        pingpong([0], C1),
    ),
    case(
        "f3-pipe-unpinned",
        "pipe-ping-pong",
        "Pipe ping-pong of two threads free to migrate.",
        pingpong(None, None),
    ),
    case(
        "f4-pipe-and-hog",
        "pipe-ping-pong",
        "Pipe ping-pong of two threads and a hog, all on one CPU.",
        pingpong(C1, C1, extra=[hog("hog", 0, C1, start=2000)]),
    ),
    case(
        "f5-one-wakes-four",
        "semaphore-fan-out",
        "A waker posts four semaphores every 3 ms (run 0.1 ms before); four workers each wait, run 0.4 ms. Free to migrate on two CPUs.",
        [
            prog(
                "waker",
                [
                    loop(
                        {"run_us": 100},
                        {"post": 0},
                        {"post": 1},
                        {"post": 2},
                        {"post": 3},
                        {"period_us": 3000},
                    )
                ],
                start=5000,
            )
        ]
        + [prog("w%d" % i, [loop({"wait": i}, {"run_us": 400})]) for i in range(4)],
        dur=800000,
    ),
    case(
        "g1-spawn-storm",
        "spawn-storm",
        "One thread creates a thread every ~0.15 ms that sleeps 20 ms at once and exits; the second CPU is idle.",
        [
            prog(
                "parent",
                [
                    {
                        "loop": 400,
                        "body": [{"spawn": dict(sleep_us=20000, run_us=0)}, {"run_us": 100}],
                    }
                ],
            )
        ],
        dur=200000,
        kids=True,
    ),
    case(
        "g2-spawn-run",
        "spawn-storm",
        "One thread creates 100 threads back to back; each runs 2 ms and exits.",
        [prog("parent", [{"loop": 100, "body": [{"spawn": dict(sleep_us=0, run_us=2000)}]}])],
        dur=300000,
        kids=True,
    ),
]
for _c in CASES:
    if _c["kind"] == "pipe-ping-pong":
        _c["duration_us"] = 25000
PELT = [
    case(
        "h1-pelt-run10-sleep30",
        "pelt-task",
        "One task runs 10 ms and sleeps 30 ms on CPU 1; /proc/TID/sched is sampled from CPU 0 every 1 ms.",
        [per("t", 10000, 30000, 0, C1, start=4000)],
        dur=800000,
        sampler=dict(cpu=0, every_us=1000, what="task"),
    ),
    case(
        "h2-pelt-step",
        "pelt-task",
        "One task: sleeps, at 100 ms hogs for 400 ms, sleeps for 400 ms; sampled from CPU 0 every 2 ms.",
        [
            prog(
                "t",
                [
                    {"until_us": 100000},
                    {"loop": 1, "body": [{"run_us": 400000}]},
                    {"sleep_us": 400000},
                ],
                0,
                C1,
            )
        ],
        dur=900000,
        sampler=dict(cpu=0, every_us=2000, what="task"),
    ),
    case(
        "h3-group-shares-uneven",
        "pelt-group",
        "Two CPUs; group A (1024): one hog on CPU 0 and three hogs on CPU 1; group B (1024): one hog on each CPU. The debugfs scheduler dump is sampled every 20 ms.",
        [
            hog("a0", 0, [0], "/A"),
            hog("a1", 0, C1, "/A", start=1000),
            hog("a2", 0, C1, "/A", start=2000),
            hog("a3", 0, C1, "/A", start=3000),
            hog("b0", 0, [0], "/B", start=4000),
            hog("b1", 0, C1, "/B", start=5000),
        ],
        dur=1200000,
        cgroups=[dict(path="/A", shares=1024), dict(path="/B", shares=1024)],
        sampler=dict(cpu=0, every_us=20000, what="debug"),
    ),
    case(
        "h4-group-shares-one-side",
        "pelt-group",
        "Two CPUs; group A (1024): one hog on CPU 0 and one task on CPU 1 that runs 4 ms and sleeps 12 ms; group B (1024): one hog on CPU 1. The debugfs scheduler dump is sampled every 20 ms.",
        [
            hog("a0", 0, [0], "/A"),
            per("a1", 4000, 12000, 0, C1, "/A", start=1000),
            hog("b1", 0, C1, "/B", start=2000),
        ],
        dur=1200000,
        cgroups=[dict(path="/A", shares=1024), dict(path="/B", shares=1024)],
        sampler=dict(cpu=0, every_us=20000, what="debug"),
    ),
]
FILL_NOTE = " CPU 1 also carries a SCHED_IDLE spinner pinned to it from 50 ms before the start ('filler'), so that the idle task never runs there and every event of that CPU is seen."


def fill(c, suffix=""):
    c = dict(c)
    c["name"] += suffix
    c["what"] += FILL_NOTE
    c["tasks"] = c["tasks"] + [
        dict(
            name="filler",
            nice=0,
            affinity=[1],
            cgroup="/",
            start_us=-50000,
            policy="idle",
            program=["hog"],
        )
    ]
    return c


FILL = {
    "b6-3-sleepers",
    "e1-quota-50of100-1t",
    "e2-quota-5of10-1t",
    "e3-quota-50of100-2t",
    "e4-quota-5of10-4t",
    "e5-burst",
    "e6-no-burst",
    "e7-nested-quota",
    "h1-pelt-run10-sleep30",
    "h2-pelt-step",
}
FILL2 = {
    "d6-4-periodic",
    "f2-pipe-two-cpus",
    "f3-pipe-unpinned",
    "f5-one-wakes-four",
    "g1-spawn-storm",
    "g2-spawn-run",
}
CASES = [fill(c) if c["name"] in FILL else c for c in CASES] + [
    fill(c, "-fill") for c in CASES if c["name"] in FILL2
]
PELT = [fill(c) if c["name"] in FILL else c for c in PELT]
