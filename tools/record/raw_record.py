#!/usr/bin/env python3
"""raw_record.py MODULE=OUTDIR...: for some cases one run recorded by perf (perf.data) and one by ftrace (raw ring-buffer pages kept as trace.dat)."""

import sys, os, importlib, json, time, shutil, pickle
import record
from record import *
import ftr

PICK = {
    "cases_public": [
        "a2-hogs-0-5",
        "b1-hog-run2-sleep8",
        "c3-nested-3-deep",
        "d1-3hogs-2cpus",
        "e2-quota-5of10-1t",
        "f4-pipe-and-hog",
        "f5-one-wakes-four-fill",
        "g2-spawn-run-fill",
    ]
}


def main():
    scratch = os.environ.get("SCRATCH", "kt-scratch")
    record.FT = Ftrace(EVENTS)
    for a in sys.argv[1:]:
        mod, out = a.split("=")
        M = importlib.import_module(mod)
        for c in M.CASES:
            if c["name"] not in PICK[mod]:
                continue
            d = out + "/" + c["name"]
            c = dict(c)
            c["duration_us"] = min(c["duration_us"], 500000)
            for t in range(3):
                res, data, _, _ = one_run(c, scratch, tracer="perf")
                shutil.copy(data, d + "/run-perf.data")
                t0 = res["T0_ns"]
                json.dump(
                    {
                        "T0_ns": t0,
                        "T1_ns": t0 + c["duration_us"] * 1000,
                        "tids": {x["name"]: x["tid"] for x in res["tasks"]},
                        "sched": {
                            e["name"]: {
                                k: v for k, v in parse_sched(e["sched"]).items() if k in KEEP
                            }
                            for e in res["end"]
                        },
                    },
                    open(d + "/run-perf.window.json", "w"),
                )
                break
            keep = {}
            orig = Ftrace.raw

            def raw(self):
                keep["raw"] = orig(self)
                return keep["raw"]

            Ftrace.raw = raw
            best = None
            for t in range(3):
                res, data, text, m = one_run(c, scratch)
                if best is None or m["foreign_pct"] < best[0]:
                    best = (m["foreign_pct"], res, keep["raw"])
                if best[0] < 1:
                    break
            Ftrace.raw = orig
            t0 = best[1]["T0_ns"]
            pickle.dump(best[2], open(d + "/run-ftrace.raw.pkl", "wb"))
            json.dump(
                {
                    "T0_ns": t0,
                    "T1_ns": t0 + c["duration_us"] * 1000,
                    "tids": {x["name"]: x["tid"] for x in best[1]["tasks"]},
                    "disturbance_pct": best[0],
                },
                open(d + "/run-ftrace.window.json", "w"),
            )
            print(
                c["name"],
                os.path.getsize(d + "/run-perf.data"),
                {k: len(v) for k, v in best[2].items()},
                best[0],
                flush=True,
            )


if __name__ == "__main__":
    try:
        main()
    finally:
        if record.FT:
            record.FT.close()
