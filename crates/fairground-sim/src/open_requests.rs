//! Requests that were not answered by the end of a run. Percentiles are of those that were, so
//! under overload they are of the lucky ones: what waits longest is not among them.

use crate::cache::NS;
use crate::machine::Sim;
use crate::machine::task::Life;
use crate::workload::metric::From;

/// The open requests of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenRequests {
    /// Its name.
    pub request: String,
    /// How many are open.
    pub open: u64,
    /// How many ended in the measured time.
    pub ended: u64,
    /// For how long the oldest has been open, ns.
    pub longest_ns: u64,
    /// Metrics of the workload that they leave undecided: so many have been open for longer than
    /// the percentile of those that ended that the percentile of all is above it.
    pub undecided: Vec<String>,
}

/// Those of each kind that has any.
pub(crate) fn open_requests(sim: &Sim<'_>) -> Vec<OpenRequests> {
    let kinds = 0..sim.workload.requests.len().min(64) as u32;
    kinds.filter_map(|kind| of_kind(sim, kind)).collect()
}

fn of_kind(sim: &Sim<'_>, kind: u32) -> Option<OpenRequests> {
    let now_ns = sim.now / NS;
    let alive = sim.tasks.iter().filter(|t| t.life != Life::Exited);
    let open = alive.filter(|t| t.open >> kind & 1 == 1);
    let ages: Vec<u64> = open
        .map(|t| now_ns.saturating_sub(t.requests[kind as usize]))
        .collect();
    let longest_ns = *ages.iter().max()?;
    let ended = sim.marks.requests.get(kind as usize)?.len();
    let undecided = |m: &&crate::workload::metric::MetricDef| {
        let From::RequestQuantileUs { request, permille } = m.from else {
            return false;
        };
        let Some(value_us) = m.value(&sim.marks).filter(|_| request == kind) else {
            return false;
        };
        let older = ages.iter().filter(|age| **age as f64 > value_us * 1e3);
        let allowed = (1000 - u64::from(permille)) * (ended + ages.len() as u64);
        older.count() as u64 * 1000 > allowed
    };
    let metrics = sim.workload.metrics.iter().filter(undecided);
    Some(OpenRequests {
        request: sim.workload.requests[kind as usize].clone(),
        open: ages.len() as u64,
        ended,
        longest_ns,
        undecided: metrics.map(|m| m.name.clone()).collect(),
    })
}

#[cfg(test)]
mod tests {
    use crate::machine::Setup;
    use crate::machine_file::Machine;
    use crate::outcome;
    use crate::spec::Scenario;
    use crate::workload::Env;

    /// Eight clients, a service of one thread that computes 1 ms for each, and a limit.
    fn with_quota(cpu_max: &str) -> outcome::Outcome {
        let text = format!(
            "duration = \"200ms\"\nservices = [\"web\"]\n\
             [[cgroup]]\npath = \"/web\"\n\"cpu.max\" = \"{cpu_max}\"\n\
             [[task]]\nname = \"worker\"\ncgroup = \"/web\"\n\
             steps = [{{ loop = \"forever\", steps = [\
             {{ serve = \"web\" }}, {{ run = \"1ms\" }}, {{ reply = \"web\" }}] }}]\n\
             [[task]]\nname = \"client\"\ncount = 8\nsteps = [{{ loop = \"forever\", steps = [\
             {{ request = \"web\" }}, {{ sleep = \"exp 10ms\" }}] }}]\n"
        );
        let machine = Machine::builtin("spr-guest-2cpu").unwrap();
        let scenario = Scenario::parse("open.toml", &text).unwrap();
        let workload = scenario.workload(&Env { cpus: 2 }).unwrap();
        outcome::run(&Setup {
            machine: &machine,
            features: fairground::policy::Features::default(),
            workload: &workload,
            seed: 1,
            trace: false,
        })
        .unwrap()
    }

    #[test]
    fn what_waits_for_a_starved_service_is_counted_and_leaves_percentiles_open() {
        let starved = with_quota("1ms/200ms");
        let open = &starved.open_requests[0];
        assert!(open.open >= 7 && open.longest_ns > 100_000_000, "{open:?}");
        let named = |name: &str| open.undecided.iter().any(|m| m == name);
        assert!(named("web.latency_us.p99") && named("web.latency_us.p50"));
        let served = with_quota("max").open_requests;
        assert!(served.iter().all(|o| o.undecided.is_empty()), "{served:?}");
    }
}
