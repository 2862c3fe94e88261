//! `fairground calibrate`: measures this computer and writes a machine file of it.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use fairground::policy::PipeTimes;
use fairground_calibrate::{Base, Calibration, Conf, Idle, Options};
use fairground_sim::machine_file::Machine;
use fairground_sim::truth::costs::{CORE_CYCLES, Operation, core_cycles, nanoseconds};

use crate::failure::Failure;
use crate::inputs::Inputs;
use crate::output;
use crate::progress::bar;

/// `fairground calibrate`.
#[derive(Debug, Args)]
pub struct CalibrateArgs {
    /// Write the machine file here; `-` is standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub output: PathBuf,
    /// Short name of the machine in the file
    #[arg(long, value_name = "NAME", default_value = "calibrated")]
    pub id: String,
    /// Machine whose figures stand in for what cannot be measured: a name of `list machines`, or a
    /// file [default: by architecture, and whether this is a guest]
    #[arg(long, value_name = "MACHINE")]
    pub base: Option<String>,
    /// Fewer batches and pairs of CPUs: quicker, and rougher
    #[arg(long)]
    pub quick: bool,
    /// No summary and no progress
    #[arg(short, long)]
    pub quiet: bool,
    /// No progress
    #[arg(long)]
    pub no_progress: bool,
}

/// Measures, writes the file and says what was found.
///
/// # Errors
/// An unknown base, a place that cannot be written, a system that cannot be understood.
pub fn calibrate(args: &CalibrateArgs) -> Result<(), Failure> {
    if args.id.trim().is_empty() {
        return Err(Failure::new("--id is empty; expected a short name"));
    }
    let mut inputs = Inputs::default();
    if let Some(base) = &args.base {
        inputs.add_machine(base);
    }
    let place = output::Place::new("--output", &args.output, &inputs)?;
    let base = base(args)?;
    let template = "{bar:30} {pos}/{len} {msg} ({elapsed})";
    let bar = bar(1, template, args.quiet || args.no_progress);
    let mut progress = |step: &str, done: u32, all: u32| {
        bar.set_length(u64::from(all));
        bar.set_position(u64::from(done));
        bar.set_message(step.to_string());
    };
    let options = Options { quick: args.quick };
    let found = fairground_calibrate::calibrate(options, &base, &mut progress);
    bar.finish_and_clear();
    let mut found = found.map_err(Failure::new)?;
    pace(&mut found, args, &base)?;
    if found.system.guest {
        way_out_of_idle(&mut found, args, &base)?;
    }
    let (text, _) = file(&found, args, &base)?;
    place.write(&text)?;
    if !args.quiet {
        let summary = summary(&found, args, place.is_stdout());
        if place.is_stdout() {
            crate::stderr(&summary);
        } else {
            output::stdout(&summary)?;
        }
    }
    Ok(())
}

/// The text of the file, and what it says. A file that cannot be read back is a defect here;
/// better said now than at the first run.
fn file(
    found: &Calibration,
    args: &CalibrateArgs,
    base: &Base,
) -> Result<(String, Machine), Failure> {
    let text = fairground_calibrate::text(found, &args.id, &base.id);
    let machine = Machine::from_toml(&args.output.display().to_string(), &text)?;
    Ok((text, machine))
}

/// Adds the pace of kernel code: the one at which a simulated write and read of a pipe take as long
/// as the measured ones.
fn pace(found: &mut Calibration, args: &CalibrateArgs, base: &Base) -> Result<(), Failure> {
    let mut unknown = found.clone();
    let figures = &mut unknown.figures;
    figures.derived(CORE_CYCLES, 1.0, "ratio", "not known yet");
    let (_, machine) = file(&unknown, args, base)?;
    let measured = found.figures.get("kernel_ops.pipe_write_read_self");
    let ns = measured.map_or(0.0, |f| f.value.v);
    match core_cycles(&machine, ns, pipe_times()).map_err(Failure::new)? {
        Some(pace) => {
            let note = format!(
                "cycles for the same kernel code, relative to the cost table: the simulated \
                 pipe_write_read_self takes {ns:.0} ns with it"
            );
            found.figures.derived(CORE_CYCLES, pace, "ratio", &note);
        }
        None => {
            let why = format!("no pace of kernel code makes pipe_write_read_self {ns:.0} ns");
            let path = [CORE_CYCLES];
            found.figures.from_base(base, &path, "ratio", &why);
            found.not_measured.push((CORE_CYCLES.into(), why));
        }
    }
    Ok(())
}

/// Those of the running kernel; of one that does not say its version, those of today.
fn pipe_times() -> PipeTimes {
    match fairground_calibrate::kernel_version() {
        Some(version) if version < (6, 15) => PipeTimes::EachCall,
        _ => PipeTimes::Fifos,
    }
}

/// In a guest the host takes part in waking a CPU, of which the driver of the idle states knows
/// nothing: the deepest state gets the exit latency with which a simulated wake-up of an idle CPU
/// takes as long as the measured one.
fn way_out_of_idle(
    found: &mut Calibration,
    args: &CalibrateArgs,
    base: &Base,
) -> Result<(), Failure> {
    let measured = found.figures.get("kernel_ops.wake_latency_idle_cpu");
    let Some(ns) = measured.map(|f| f.value.v) else {
        return Ok(());
    };
    if found.system.idle.is_empty() {
        found.system.idle.push(Idle {
            name: "HLT".into(),
            exit_us: 0.0,
            // A halt is always asked for: without a driver there is no choice.
            residency_us: 0,
        });
    }
    // The rest of a wake-up hardly depends on the exit: two steps are enough.
    for _ in 0..2 {
        let (_, machine) = file(found, args, base)?;
        let simulated = nanoseconds(Operation::WakeIdle("1", "0"), 0, &machine, 1);
        let simulated = simulated.map_err(Failure::new)?;
        if let Some(state) = found.system.idle.last_mut() {
            let exit = state.exit_us + (ns - simulated) / 1000.0;
            state.exit_us = (exit.max(0.0) * 100.0).round() / 100.0;
        }
    }
    Ok(())
}

/// The machine that was named, or one of the same kind.
fn base(args: &CalibrateArgs) -> Result<Base, Failure> {
    let guest = std::fs::read_to_string("/proc/cpuinfo")
        .is_ok_and(|text| text.split_whitespace().any(|w| w == "hypervisor"));
    let alike = match (std::env::consts::ARCH, guest) {
        ("aarch64", _) => "kunpeng920-6426-2s",
        (_, true) => "spr-guest-2cpu",
        (_, false) => "spr-8480-2s",
    };
    let machine = Machine::from_path_or_id(args.base.as_deref().unwrap_or(alike))?;
    let figures = machine.figures().map(|(path, f)| (path.to_string(), f.v));
    Ok(Base {
        id: machine.id.clone(),
        figures: figures.collect(),
    })
}

fn summary(found: &Calibration, args: &CalibrateArgs, on_stdout: bool) -> String {
    let shape = &found.shape;
    let mut text = format!(
        "{}: {} CPUs = {} x {} x {} x {} (packages, dies, cores, threads), {} NUMA nodes\n\n",
        found.system.model,
        shape.cpus(),
        shape.sockets,
        shape.dies_per_socket,
        shape.cores_per_die,
        shape.threads_per_core,
        shape.slit.len(),
    );
    for f in found.figures.iter().filter(|f| f.conf != Conf::Estimate) {
        let range = format!("{:.1} to {:.1}", f.value.lo, f.value.hi);
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:<42} {:>10.1} {:<6} {:>22}  {}",
            f.path,
            f.value.v,
            f.unit,
            range,
            f.conf.as_str()
        );
    }
    if !found.not_measured.is_empty() {
        text.push_str("\nNot measured:\n");
        for (path, why) in &found.not_measured {
            let _ = writeln!(text, "{path}: {why}");
        }
    }
    for warning in &found.warnings {
        let _ = writeln!(text, "warning: {warning}");
    }
    for note in &shape.notes {
        let _ = writeln!(text, "note: {note}");
    }
    if found.is_disturbed() {
        let _ = writeln!(
            text,
            "note: other programs were running (load {:.1}): times are too high; repeat it on a \
             quiet machine",
            found.load
        );
    }
    if found.hz > 0 {
        let _ = writeln!(text, "\nThe tick of this kernel: --set hz={}", found.hz);
    }
    if !on_stdout {
        let path = args.output.display();
        let _ = writeln!(
            text,
            "Run on it: fairground run --machine {path} -- WORKLOAD"
        );
    }
    text
}
