//! Small operations on the simulated guest beside what was measured on the real one: the table of
//! `docs/calibration.md`:
//! `cargo run --release -p fairground-sim --example calibrate -- costs.json [MACHINE]`
use fairground_sim::{
    machine_file::Machine,
    truth::{costs, simulate::MACHINE},
};

fn main() {
    let path = std::env::args().nth(1).expect("the path of a costs.json");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let measured = costs::Costs::parse(&text).unwrap_or_else(|e| panic!("{path}: {e}"));
    let machine = std::env::args().nth(2).unwrap_or(MACHINE.into());
    let machine = Machine::from_path_or_id(&machine).unwrap_or_else(|e| panic!("{e}"));
    let rows = costs::check(&measured, &machine, &[1]).unwrap_or_else(|e| panic!("{e}"));
    println!("| operation | measured, ns | simulated, ns | off by |\n| --- | ---: | ---: | ---: |");
    for row in rows {
        let Some(simulated) = row.simulated else {
            continue;
        };
        let (a, b) = (row.recorded.mean, simulated.mean);
        let off = 100.0 * (b / a - 1.0);
        println!("| {} | {a:.0} | {b:.0} | {off:+.0} % |", row.metric);
    }
}
