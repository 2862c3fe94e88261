//! Prints the domains of a CPU.
use fairground::{policy::Features, topology::Topology, value::Cpu};
fn main() {
    let m =
        fairground_sim::machine_file::Machine::builtin(&std::env::args().nth(1).unwrap()).unwrap();
    let t = Topology::build(&fairground_sim::machine::topology_of(&m));
    let _ = Features::default();
    for sd in t.domains(Cpu(19)) {
        println!(
            "{} {} groups {} {:?}",
            sd.kind.name(),
            sd.weight,
            sd.groups.len(),
            sd.flags
        );
        for g in sd.groups.iter().take(3) {
            println!(
                "   w{} cap {:?} {:?}",
                t.group(*g).weight,
                t.group(*g).state.capacity,
                t.group(*g).span
            );
        }
    }
}
