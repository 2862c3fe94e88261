"""Reads case.json (docs/truth.md) into the form that record.py works with; the reverse of ktlib.conv_case."""

import json

# Groups of a case lie below /kt, which the recorder makes.
TOP = "/kt"
KEYS = {
    "format", "name", "kind", "what", "machine", "duration_us", "settle_ms", "cgroups", "tasks",
    "barriers", "events", "phase_starts_us", "sampler", "notes",
}  # fmt: skip


def path_below(path):
    """/kt/A -> /A; the root stays."""
    if path in (None, "/", TOP):
        return "/"
    if not path.startswith(TOP + "/"):
        raise ValueError("group %s: expected a path below %s" % (path, TOP))
    return path[len(TOP) :]


def steps(program):
    out = []
    for step in program:
        step = dict(step)
        if "body" in step:
            step["body"] = steps(step["body"])
        if "set_cgroup" in step:
            step["set_cgroup"] = path_below(step["set_cgroup"])
        out.append(step)
    return out


def spawns(program):
    return any("spawn" in s or spawns(s.get("body", [])) for s in program)


def group(g):
    g = dict(g, path=path_below(g["path"]))
    if not isinstance(g.get("shares"), int):
        g.pop("shares", None)
    return {k: v for k, v in g.items() if v is not None}


def task(t):
    t = dict(t, cgroup=path_below(t.get("cgroup")), program=steps(t["program"]))
    return {k: v for k, v in t.items() if v is not None}


def load(file):
    """One case. Raises ValueError for what is not in the format."""
    with open(file) as f:
        case = json.load(f)
    unknown = set(case) - KEYS
    if unknown or "tasks" not in case:
        raise ValueError("%s: unknown keys %s, or no tasks" % (file, sorted(unknown)))
    groups = [group(g) for g in case.get("cgroups", []) if g["path"] != TOP]
    out = {
        "name": case["name"],
        "kind": case["kind"],
        "what": case.get("what", ""),
        "duration_us": case["duration_us"],
        "settle_ms": case.get("settle_ms", 250),
        "cgroups": groups,
        "tasks": [task(t) for t in case["tasks"]],
        "barriers": case.get("barriers", {}),
        "events": [dict(e, cgroup=path_below(e["cgroup"])) for e in case.get("events", [])],
    }
    if any(spawns(t["program"]) for t in out["tasks"]):
        out["kids"] = True
    if len(case.get("phase_starts_us", [])) > 1:
        out["split_us"] = case["phase_starts_us"][1:]
    if case.get("sampler"):
        out["sampler"] = case["sampler"]
    return out
