//! The emulated guest as a machine of the simulator.

use fairground::place::Func;
use fairground::policy::Features;
use fairground::topology::Machine as Places;
use fairground::value::Cpu;

use crate::cache::NS;
use crate::machine::{Setup, Sim};
use crate::machine_file::{CpuPlace, Machine, Topology};
use crate::truth::smp::machine::Guest;
use crate::workload::program::{Ns, Workload};

/// What is charged there, every figure with its origin.
const COSTS: &str = include_str!("tcg-guest.toml");

/// What a recorder of states adds, ns: for each record, for each CPU and each group in it. Storms
/// with state have a thread every 194 us (16 CPUs, 16 groups), 156 (16, 10) and 231 (32, 12),
/// without every 18; two attempts to balance in one turn are 62 us apart with 8 groups and 21 to 23
/// with 2.
const RECORD_NS: Ns = 8_000;
const RECORD_CPU_NS: Ns = 3_900;
const RECORD_GROUP_NS: Ns = 6_800;
/// What tracing whole runs adds to a fork, ns: threads of a pinned parent are 65 us apart, 18
/// without.
pub(super) const TRACED_FORK_NS: Ns = 47_000;
/// What a recorder of load tracking adds, ns: for each update of an entity or a queue, and for each
/// weight of a group's entity. Two records that follow each other on a CPU are 10 us apart if the
/// second is an update, 5 if it is a weight (medians of `pelt/updates_*.csv` and
/// `pelt/group_shares_*.csv`).
const UPDATE_RECORD_NS: Ns = 10_000;
const WEIGHT_RECORD_NS: Ns = 5_000;

/// What is recorded of load tracking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Records {
    pub entities: bool,
    pub queues: bool,
    pub weights: bool,
}

/// What of a recorded machine is tied to its tick, ns after it.
struct Phases {
    topology: &'static str,
    /// Where a storm with states begins: the first record of each in `fork/decisions_*.jsonl` is at
    /// the same point of a tick to some us.
    storm_ns: Ns,
    /// Where one begins of which only the wake-ups are traced: where the median gaps between forks,
    /// which turns of the children lengthen, are the recorded ones. Their mean logarithmic error is
    /// 0.12 from 480 to 560 us, least at 500, and 0.2 to 0.7 from 580 on and below 460.
    light_storm_ns: Ns,
    /// A timer of the emulator that no CPU has set: where ticks of busy CPUs come one after the
    /// other (`balance/intervals_*.csv`), each is a turn after the last, so turns tell the time
    /// that was left to the next timer. It is the same point of every tick, in all runs of a
    /// machine.
    timer_ns: Option<Ns>,
}

/// Of the trace clock modulo a tick, ticks of CPU 0 are at 0.87 ms (2x8) and 1.44 (2x8x2), storms
/// at 1.68 and 3.18, the timer at 2.61 and 1.77.
const PHASES: &[Phases] = &[
    Phases {
        topology: "2x8",
        storm_ns: 810_000,
        light_storm_ns: 500_000,
        timer_ns: Some(1_735_000),
    },
    Phases {
        topology: "2x8x2",
        storm_ns: 1_740_000,
        light_storm_ns: 500_000,
        timer_ns: Some(330_000),
    },
];

/// What is taken of machines of which these are not known: the storms of 2x8, and no timer. Of
/// 1x16 there are storms, but no ticks to compare with.
const OTHER: Phases = Phases {
    topology: "",
    storm_ns: 810_000,
    light_storm_ns: 500_000,
    timer_ns: None,
};

fn known(topology: &str) -> Option<&'static Phases> {
    PHASES.iter().find(|p| p.topology == topology)
}

fn phases(topology: &str) -> &'static Phases {
    known(topology).unwrap_or(&OTHER)
}

/// What is assumed of a machine, if something is.
pub(super) fn assumed(topology: &str) -> Option<String> {
    known(topology).is_none().then(|| {
        format!(
            "assumed, since it is not known of {topology}: storms begin {} us after a tick \
             ({} without states), and no timer comes beside it",
            OTHER.storm_ns / 1000,
            OTHER.light_storm_ns / 1000
        )
    })
}

/// How long after a tick storms begin, ns.
pub(super) fn storm_phase_ns(topology: &str, with_state: bool) -> Ns {
    let phases = phases(topology);
    match with_state {
        true => phases.storm_ns,
        false => phases.light_storm_ns,
    }
}

/// Seeds of the simulated runs.
pub(super) const SEEDS: std::ops::RangeInclusive<u64> = 1..=3;

/// The costs of the emulator on the recorded topology. `name` is that of the topology.
pub(super) fn machine(name: &str, guest: &Guest) -> Result<Machine, String> {
    let mut machine = Machine::from_toml("tcg-guest.toml", COSTS).map_err(|e| e.to_string())?;
    machine.topology = topology(guest.places());
    machine.id = name.into();
    Ok(machine)
}

fn topology(places: &Places) -> Topology {
    let nodes = places.cpus.iter().map(|p| p.node).max().unwrap_or(0) as usize + 1;
    let place = |(i, p): (usize, &fairground::topology::CpuPlace)| {
        let before = places.cpus[..i].iter().filter(|o| o.core == p.core);
        CpuPlace {
            socket: p.node,
            die: p.node,
            llc: p.llc,
            numa_node: p.node,
            cluster: p.cluster,
            core: p.core,
            thread: before.count() as u32,
            capacity: p.capacity,
        }
    };
    let row = |from: usize| (0..nodes).map(move |to| if from == to { 10 } else { 20 });
    let slit = match places.distance.len() == nodes {
        true => places.distance.clone(),
        false => (0..nodes).map(|from| row(from).collect()).collect(),
    };
    Topology {
        cpus: places.cpus.iter().enumerate().map(place).collect(),
        slit,
        siblings_apart: false,
    }
}

/// Forks are recorded from now on. The state is copied before the kernel chooses a CPU and written
/// down after it, still before the child is woken there: the next choice finds it at work.
pub(super) fn record_forks(sim: &mut Sim<'_>, machine: &Machine) {
    sim.host.prices.func[Func::FindIdlestCpu as usize] += state_record_ns(machine) * NS;
}

/// What recording the state adds to a fork: all CPUs, and the groups of each level.
fn state_record_ns(machine: &Machine) -> Ns {
    let seen = fairground::topology::Topology::build(&crate::machine::topology_of(machine));
    let seen = seen.expect("it runs");
    let levels = seen.domains(Cpu(0)).iter();
    let groups: usize = levels.map(|sd| sd.groups.len()).sum();
    let cpus = machine.topology.nr_cpus() as Ns;
    RECORD_NS + cpus * RECORD_CPU_NS + groups as Ns * RECORD_GROUP_NS
}

/// Attempts to balance are recorded from now on, or not any more.
pub(super) fn record_attempts(sim: &mut Sim<'_>, on: bool) {
    let prices = &mut sim.host.prices;
    let record = RECORD_NS * NS;
    let attempt = &mut prices.func[Func::UpdateSdLbStats as usize];
    *attempt = if on {
        *attempt + record
    } else {
        *attempt - record
    };
    prices.group_record = if on { RECORD_GROUP_NS * NS } else { 0 };
}

/// Updates of load tracking and weights of groups are recorded from now on, or not any more. Of
/// updates only those for which a unit of time has passed are in the files.
pub(super) fn record_updates(sim: &mut Sim<'_>, records: Records, on: bool) {
    let prices = &mut sim.host.prices;
    let update = UPDATE_RECORD_NS * NS * u64::from(on);
    prices.update_record = [records.entities, records.queues].map(|of| update * u64::from(of));
    let weight = u64::from(records.weights) * WEIGHT_RECORD_NS * NS;
    let price = &mut prices.func[Func::UpdateCfsGroup as usize];
    *price = if on { *price + weight } else { *price - weight };
}

/// A traced run of `workload`, nothing done yet.
pub(super) fn sim<'a>(
    machine: &'a Machine,
    features: Features,
    workload: &'a Workload,
    seed: u64,
) -> Result<Sim<'a>, String> {
    let setup = Setup {
        machine,
        features,
        workload,
        seed,
        trace: true,
    };
    let mut sim = Sim::new(&setup).map_err(|e| e.to_string())?;
    sim.align_ticks(0);
    if let Some(at_ns) = phases(&machine.id).timer_ns {
        sim.set_timer_beside(at_ns);
    }
    Ok(sim)
}
