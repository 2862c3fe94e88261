//! Requests that were not answered by the end of a run, and what they leave undecided.

use crate::cache::NS;
use crate::machine::Sim;
use crate::machine::task::{Life, SimTask};

/// The open requests of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenRequests {
    /// Its name.
    pub request: String,
    /// How many are open.
    pub open: u64,
    /// How many ended in the measured time.
    pub ended: u64,
    /// For how long the oldest has been open, ns.
    pub longest_ns: u64,
    /// Metrics of the workload that they leave undecided, and what each of them is at least, in its
    /// unit: so many are open that the percentile of all may be above every one that ended.
    pub undecided: Vec<(String, f64)>,
}

impl Sim<'_> {
    /// The run ends: what is open stays so.
    pub(crate) fn leave_requests_open(&mut self) {
        let now_ns = self.now / NS;
        let kinds = 0..self.workload.requests.len().min(64) as u32;
        for task in self.tasks.iter().filter(|t| t.life != Life::Exited) {
            for kind in kinds.clone().filter(|kind| task.open >> kind & 1 == 1) {
                let start_ns = task.requests[kind as usize];
                self.marks.left_open(kind, start_ns, now_ns);
            }
        }
        for kind in kinds {
            let in_time = |t: &&SimTask| t.ended > 0 || t.open >> kind & 1 == 1;
            let asked = self.tasks.iter().filter(|t| t.asked >> kind & 1 == 1);
            self.marks.halves[kind as usize].askers = asked.filter(in_time).count() as u64;
        }
    }
}

/// Unanswered requests, by kind; kinds without any are left out.
pub(crate) fn open_requests(sim: &Sim<'_>) -> Vec<OpenRequests> {
    let kinds = 0..sim.workload.requests.len() as u32;
    kinds.filter_map(|kind| of_kind(sim, kind)).collect()
}

fn of_kind(sim: &Sim<'_>, kind: u32) -> Option<OpenRequests> {
    let ages = sim.marks.ages(kind);
    let undecided = sim.workload.metrics.iter().filter_map(|m| {
        let bound = m
            .bound(&sim.marks)
            .filter(|_| m.from.is_quantile_of(kind))?;
        Some((m.name.clone(), bound))
    });
    Some(OpenRequests {
        request: sim.workload.requests[kind as usize].clone(),
        open: ages.len() as u64,
        ended: sim.marks.requests.get(kind as usize)?.len(),
        longest_ns: *ages.last()?,
        undecided: undecided.collect(),
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
        let named = |name: &str| open.undecided.iter().any(|(m, us)| m == name && *us > 1e5);
        assert!(named("web.latency_us.p99") && named("web.latency_us.p50"));
        let served = with_quota("max").open_requests;
        assert!(served.iter().all(|o| o.undecided.is_empty()), "{served:?}");
    }
}
