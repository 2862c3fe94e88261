//! From the machine to all that is known of it: which steps there are, and their order.

use std::io;
use std::path::Path;

use crate::CalibrateError;
use crate::figure::{Base, Figures};
use crate::measure::{self, kernel};
use crate::pairs::{self, Class};
use crate::shape::Shape;
use crate::steps::Run;
use crate::sysfs::System;

/// How to measure.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Fewer batches (mostly 5 for 41) and pairs of CPUs: seconds instead of a minute, and rougher.
    pub quick: bool,
}

/// Told before each step: its name, how many are done, how many there are.
pub type Progress<'a> = &'a mut dyn FnMut(&str, u32, u32);

/// What is known of the computer.
#[derive(Clone, Debug)]
pub struct Calibration {
    /// What the system says.
    pub system: System,
    /// Its topology as a machine file says it.
    pub shape: Shape,
    /// Figures, measured and not.
    pub figures: Figures,
    /// What could not be measured: the figure, and why.
    pub not_measured: Vec<(String, String)>,
    /// What was measured and does not count as measured, and why.
    pub warnings: Vec<String>,
    /// Ticks a second; 0 if the system does not say.
    pub hz: u32,
    /// Programs that wanted a CPU when the measurements began, as `/proc/loadavg` says.
    pub load: f64,
    /// Pairs of CPUs between which lines were handed over, by class.
    pub pairs: Vec<(Class, usize)>,
}

impl Calibration {
    /// Whether other programs took so much of the machine that the figures are too high.
    pub fn is_disturbed(&self) -> bool {
        self.load > 0.2 * self.system.cpus.len() as f64
    }
}

/// Steps of which the progress is told.
const STEPS: [&str; 8] = [
    "clock and division",
    "caches and memory",
    "updates of one CPU",
    "lines between CPUs",
    "contended updates",
    "system calls and switches",
    "wake-ups across CPUs",
    "levels of groups",
];

/// Pairs measured of each class, at most.
const PAIRS_EACH: usize = 150;

/// Measures the computer on which this runs: under two minutes, without root.
///
/// # Errors
/// `/sys` cannot be understood, or the process may not choose its CPU.
pub fn calibrate<'a>(
    options: Options,
    base: &'a Base,
    progress: Progress<'_>,
) -> Result<Calibration, CalibrateError> {
    let system = System::read(Path::new("/"))?;
    let refused = |source| CalibrateError::Refused {
        what: "cannot pin a thread to a CPU".into(),
        source,
    };
    let mut allowed = measure::allowed().map_err(refused)?;
    allowed.retain(|id| system.cpu(*id).is_some());
    // Interrupts prefer the first CPU.
    let Some(cpu) = allowed.last().copied() else {
        return Err(refused(io::Error::other(
            "none of the online CPUs is allowed",
        )));
    };
    let mut run = Run {
        every: pairs::all(&system, &allowed),
        count: if options.quick { 5 } else { 41 },
        each: if options.quick { 4 } else { PAIRS_EACH },
        quick: options.quick,
        base,
        cpu,
        out: Calibration {
            shape: Shape::of(&system),
            figures: Figures::default(),
            not_measured: Vec::new(),
            warnings: Vec::new(),
            hz: kernel::hz(),
            load: load(),
            pairs: Vec::new(),
            system,
        },
    };
    let steps: [fn(&mut Run<'a>) -> io::Result<()>; 8] = [
        Run::clock,
        Run::memory,
        Run::updates,
        Run::lines,
        Run::contention,
        Run::calls,
        Run::wakeups,
        Run::groups,
    ];
    for (number, (name, step)) in STEPS.iter().zip(steps).enumerate() {
        progress(name, number as u32, STEPS.len() as u32);
        step(&mut run).map_err(|source| CalibrateError::Refused {
            what: (*name).to_string(),
            source,
        })?;
    }
    run.rest();
    progress("", STEPS.len() as u32, STEPS.len() as u32);
    Ok(run.out)
}

/// Load of the last minute; 0 if the system does not say.
fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let first = text.split(' ').next().and_then(|w| w.parse().ok());
    first.unwrap_or(0.0)
}
