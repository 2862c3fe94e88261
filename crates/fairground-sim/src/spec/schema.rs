//! The shape of a scenario file as types, only for its JSON schema. Reading is done by hand
//! ([`super::scenario`]), because a message should name the place, what was expected and the
//! nearest known name; a test holds the keys of both against each other.
#![allow(dead_code, missing_docs)]
use schemars::JsonSchema;
use std::collections::BTreeMap;

/// The JSON schema of scenario files, pretty-printed.
pub fn json() -> String {
    let schema = schemars::schema_for!(Scenario);
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}

/// A fairground scenario: a machine, cgroups, tasks with their programs, and what happens
/// meanwhile.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct Scenario {
    /// Name in reports; the file's name by default.
    name: Option<String>,
    /// Machine file or the name of a built-in machine.
    machine: Option<String>,
    /// Kernel profile, like "linux-6.18".
    profile: Option<String>,
    /// Ticks per second: 100, 250, 300 or 1000.
    #[schemars(extend("enum" = [100, 250, 300, 1000]))]
    hz: Option<u32>,
    /// 0: a program holds /dev/cpu_dma_latency open with 0 us in it, so idle CPUs poll.
    #[schemars(extend("enum" = [0]))]
    cpu_dma_latency: Option<u32>,
    /// Measured time ("2s"), or "exit": until all tasks have exited.
    duration: Option<String>,
    /// Time before the measurement that does not count.
    warmup: Option<String>,
    /// Number of seeds, or a list of them.
    seeds: Option<Seeds>,
    /// Names of pipes.
    pipes: Option<Vec<String>>,
    /// Names of unix stream socket pairs.
    sockets: Option<Vec<String>>,
    /// Names of mutexes.
    mutexes: Option<Vec<String>>,
    /// Names of semaphores and their values at the start.
    semaphores: Option<BTreeMap<String, u32>>,
    /// Names of futexes.
    futexes: Option<Vec<String>>,
    /// Names of condition variables.
    conditions: Option<Vec<String>>,
    /// Names of barriers and how many tasks meet there.
    barriers: Option<BTreeMap<String, u32>>,
    /// Names of request/reply services.
    services: Option<Vec<String>>,
    /// Control groups.
    cgroup: Option<Vec<Cgroup>>,
    /// Tasks.
    task: Vec<Task>,
    /// Writes to files of cgroups while the scenario runs.
    event: Option<Vec<Event>>,
}

#[derive(JsonSchema)]
#[schemars(untagged)]
enum Seeds {
    Count(u32),
    List(Vec<u64>),
}

/// A control group, in the kernel's own terms.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct Cgroup {
    /// Absolute path ("/prod/web"), or a name with `parent`.
    path: String,
    /// Path or name of the parent, if `path` is a name.
    parent: Option<String>,
    /// Makes this many groups, PATH.0, PATH.1, ...; tasks in PATH are dealt over them.
    count: Option<u32>,
    /// 1 to 10000; 100 by default.
    #[schemars(rename = "cpu.weight", range(min = 1, max = 10000))]
    weight: Option<u32>,
    /// The weight in the units of cgroup v1, instead of `cpu.weight`: 1024 of it are 100.
    #[schemars(rename = "cpu.shares", range(min = 2, max = 262144))]
    shares: Option<u32>,
    /// "QUOTA PERIOD" in microseconds, "QUOTA/PERIOD" with units ("20ms/100ms"), or "max".
    #[schemars(rename = "cpu.max")]
    max: Option<String>,
    /// Quota that may be saved up: microseconds as a number, or a time with a unit as text.
    #[schemars(rename = "cpu.max.burst")]
    burst: Option<Burst>,
    /// Scheduled as SCHED_IDLE.
    #[schemars(rename = "cpu.idle")]
    idle: Option<BoolOrBit>,
    /// CPUs like "0-3,8".
    #[schemars(rename = "cpuset.cpus")]
    cpus: Option<Cpus>,
}

#[derive(JsonSchema)]
#[schemars(untagged)]
enum Burst {
    Us(#[schemars(range(min = 0, max = 1_000_000_000))] u64),
    Time(String),
}

#[derive(JsonSchema)]
#[schemars(untagged)]
enum BoolOrBit {
    Bool(bool),
    Bit(#[schemars(range(min = 0, max = 1))] u8),
}

#[derive(JsonSchema)]
#[schemars(untagged)]
enum Cpus {
    Text(String),
    One(u32),
    List(Vec<u32>),
}

/// A task or, with `count`, several that are alike.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct Task {
    /// Name.
    name: String,
    /// Number of instances, 1 by default.
    count: Option<u32>,
    /// Not started at the beginning, only by `fork` steps. How it is scheduled is as the task that
    /// forks, where it does not say.
    template: Option<BoolOrBit>,
    /// -20 to 19.
    #[schemars(range(min = -20, max = 19))]
    nice: Option<i8>,
    /// "normal", "batch" or "idle", or of the real-time class "fifo" or "rr".
    policy: Option<String>,
    /// Of a real-time task: 1 to 99, the most urgent.
    #[schemars(range(min = 1, max = 99))]
    priority: Option<u8>,
    /// CPUs it may use, like "0-3,8" or "all".
    affinity: Option<Cpus>,
    /// Path or name of its cgroup; the root by default.
    cgroup: Option<String>,
    /// Own slice, like "3ms"; 0 is the default.
    slice: Option<String>,
    /// How much later than asked its timers may fire, "50us" by default.
    timer_slack: Option<String>,
    /// Sleeps this long before its first step.
    start: Option<String>,
    /// Tasks with the same name here are threads of one process; a process each by default.
    process: Option<String>,
    /// Bytes of user memory that a microsecond of running pulls through the caches.
    footprint: Option<u32>,
    /// Memory that it comes back to, like "256KiB": what a move or other tasks have taken out of
    /// the caches is fetched again before it computes on.
    working_set: Option<String>,
    /// Program.
    steps: Vec<Step>,
}

/// A write to files of a cgroup.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct Event {
    /// When, from the start of the simulation.
    at: String,
    /// Which group.
    cgroup: String,
    #[schemars(rename = "cpu.weight", range(min = 1, max = 10000))]
    weight: Option<u32>,
    #[schemars(rename = "cpu.shares", range(min = 2, max = 262144))]
    shares: Option<u32>,
    #[schemars(rename = "cpu.max")]
    max: Option<String>,
    #[schemars(rename = "cpu.max.burst")]
    burst: Option<Burst>,
    #[schemars(rename = "cpu.idle")]
    idle: Option<BoolOrBit>,
}

/// One step: a word, or a table with one verb and its options.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum Step {
    Word(Word),
    Table(Box<Verbs>),
}

#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
enum Word {
    Hog,
    Yield,
    Join,
    Exec,
    Exit,
}

#[derive(JsonSchema)]
#[schemars(untagged)]
enum Turns {
    Count(i64),
    Word(String),
}

/// Exactly one of the verbs, and the options that belong to it.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct Verbs {
    /// Computes: a duration or "exp 1ms", "uniform 1ms 3ms", "normal 1ms 200us", "lognormal 1ms
    /// 0.5".
    run: Option<String>,
    /// Computes until this much time has passed, with a CPU or without.
    busy: Option<String>,
    /// Computes until the end.
    hog: Option<BoolOrBit>,
    /// Sleeps: a duration or distribution.
    sleep: Option<String>,
    /// Sleeps until the next of a series of points in time, this long after the one before: a
    /// duration or distribution.
    period: Option<String>,
    /// Same as period.
    timer: Option<String>,
    /// What becomes of a period's series when the task is late: "shift" (the default), or
    /// "catch-up": the points stay.
    late: Option<String>,
    /// Sleeps until this long after the task's start.
    until: Option<String>,
    /// Number of turns or "forever".
    #[schemars(rename = "loop")]
    turns: Option<Turns>,
    /// Steps of a loop.
    steps: Option<Vec<Step>>,
    /// Reads from a pipe or socket.
    read: Option<String>,
    /// Writes to a pipe or socket.
    write: Option<String>,
    /// Bytes of a read, write, request or reply.
    bytes: Option<u32>,
    /// Waits until a pipe or socket can be read.
    poll: Option<String>,
    /// Takes one from a semaphore.
    wait: Option<String>,
    /// Adds one to a semaphore.
    post: Option<String>,
    /// Waits on a futex.
    futex_wait: Option<String>,
    /// Wakes waiters of a futex.
    futex_wake: Option<String>,
    /// Waits on a condition variable; the mutex is held, released meanwhile and held again.
    cond_wait: Option<String>,
    /// Mutex of a cond_wait.
    mutex: Option<String>,
    /// Wakes one waiter of a condition variable.
    cond_signal: Option<String>,
    /// Wakes all waiters of a condition variable.
    cond_broadcast: Option<String>,
    /// How many to wake or to fork.
    n: Option<u32>,
    /// Locks a mutex.
    lock: Option<String>,
    /// Unlocks a mutex.
    unlock: Option<String>,
    /// Waits at a barrier.
    barrier: Option<String>,
    /// sched_yield.
    #[schemars(rename = "yield")]
    yields: Option<BoolOrBit>,
    /// Starts a task from a template.
    fork: Option<String>,
    /// Waits until all forked tasks have exited.
    join: Option<BoolOrBit>,
    /// Replaces its image.
    exec: Option<BoolOrBit>,
    /// Ends the task.
    exit: Option<BoolOrBit>,
    /// Changes the nice value.
    nice: Option<i8>,
    /// Changes the CPUs.
    affinity: Option<Cpus>,
    /// Moves to another cgroup.
    cgroup: Option<String>,
    /// Changes the own slice.
    slice: Option<String>,
    /// Counts a point of the program.
    mark: Option<String>,
    /// Begins a measured request.
    begin: Option<String>,
    /// "now", or "due": when the last timer expired.
    from: Option<String>,
    /// Ends a measured request.
    end: Option<String>,
    /// Sends a request to a service and waits for the reply; its duration is measured.
    request: Option<String>,
    /// Takes the next request of a service.
    serve: Option<String>,
    /// Answers it.
    reply: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{groups, read, steps, tasks};
    use std::collections::BTreeSet;

    fn keys<T: JsonSchema>() -> BTreeSet<String> {
        let schema = schemars::schema_for!(T);
        let properties = schema.as_value()["properties"].as_object().unwrap();
        properties.keys().cloned().collect()
    }

    fn set<'a>(keys: impl IntoIterator<Item = &'a &'a str>) -> BTreeSet<String> {
        keys.into_iter().map(|k| (*k).to_owned()).collect()
    }

    #[test]
    fn the_schema_knows_the_keys_that_are_read() {
        assert_eq!(keys::<Scenario>(), set(read::TOP_KEYS));
        assert_eq!(keys::<Task>(), set(tasks::TASK_KEYS));
        assert_eq!(keys::<Cgroup>(), set(groups::CGROUP_KEYS));
        assert_eq!(keys::<Event>(), set(groups::EVENT_KEYS));
        let verbs = steps::VERBS
            .iter()
            .flat_map(|(v, o)| core::iter::once(v).chain(*o));
        assert_eq!(keys::<Verbs>(), set(verbs));
    }

    #[test]
    fn the_committed_schema_is_current() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../schemas/scenario.schema.json"
        );
        if std::env::var_os("UPDATE_SCHEMAS").is_some() {
            std::fs::write(path, json()).unwrap();
        }
        let committed = std::fs::read_to_string(path).unwrap();
        assert_eq!(
            committed,
            json(),
            "UPDATE_SCHEMAS=1 cargo test writes the new one"
        );
    }
}
