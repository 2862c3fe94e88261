//! The program of one thread from its log. Times are in nanoseconds.

use fairground_sim::workload::program::{Dur, Op};

use super::cause::Timer;
use super::cut::{ALL_DONE, cut_ns, done_mark};
use super::log::{Block, Step};
use super::workload::{Builder, NEVER_NS};
use super::yields::Yields;
use crate::act::What;
use crate::event;
use crate::walk::{ThreadId, Waker};

impl Builder<'_> {
    /// The mask to which a thread is let go where it is first seen on a second CPU: it was bound to
    /// some, of which the first one was, and others that it was seen on are none of those.
    fn let_go(&mut self, thread: ThreadId, template: u32) -> Option<u32> {
        if self.from.attributes.run.is_some() {
            // A simulated run says when a thread sets its own CPUs.
            return None;
        }
        let bound = self.out.workload.templates[template as usize].affinity?;
        let mask = &self.out.workload.masks[bound as usize];
        if !self.from.logs.logs[thread].leaves(mask) {
            return None;
        }
        let masks = &mut self.out.workload.masks;
        Some(*self.out.free.get_or_insert_with(|| {
            masks.push(Vec::new());
            masks.len() as u32 - 1
        }))
    }

    /// When a thread gives up its CPU by itself. At the ends of quota, nobody comes either.
    fn yields(&self, thread: ThreadId) -> Yields {
        let told = self.from.logs.told;
        if told || self.from.attributes.cgroups.iter().any(|g| g.max.is_some()) {
            return Yields::None;
        }
        Yields::of(
            &self.from.logs.logs[thread],
            self.from.tick,
            self.from.tick_ns,
        )
    }

    pub(super) fn program(&mut self, thread: ThreadId) {
        let Some(template) = self.template[thread] else {
            return;
        };
        let let_go = self.let_go(thread, template);
        let yields = self.yields(thread);
        let logs = self.from.logs;
        let log = &logs.logs[thread];
        let trim = |of: &[u64]| of.get(thread).copied().unwrap_or(0);
        let per_op = trim(&self.trim.per_op_ns);
        let per_wake = trim(&self.trim.per_wake_ns);
        let per_run = trim(&self.trim.per_run_ppm);
        let mut ops: Vec<Op> = Vec::with_capacity(log.steps.len() + 1);
        let (mut run, mut owed, mut demand) = (0_u64, 0_u64, 0_u64);
        let (mut entries, mut woken) = (0_u64, 0_u64);
        // Computing goes in before the next operation, less what that operation will cost.
        let mut push = |run: &mut u64, op: Option<Op>, wakes: bool| {
            woken += u64::from(wakes);
            owed += per_op;
            owed += (u128::from(*run) * u128::from(per_run) / 1_000_000) as u64;
            let off = owed.min(*run);
            owed -= off;
            // The tracepoint is at its beginning.
            owed += if wakes { per_wake } else { 0 };
            let left = std::mem::take(run) - off;
            if left > 0 {
                ops.push(Op::Run(Dur::Const(left)));
                demand += left;
            }
            entries += 1;
            ops.extend(op);
        };
        let unseen = yields.unseen(log);
        let (mut ran, mut unseen) = (0, unseen.iter().copied().peekable());
        let mut after_run = false;
        for step in &log.steps {
            let apart = std::mem::replace(&mut after_run, matches!(step, Step::Run(_)));
            if let Step::Run(ns) = step {
                if apart {
                    // One stretch of the program after another, as is told.
                    push(&mut run, None, false);
                }
                let to = ran + ns;
                while let Some(at) = unseen.next_if(|at| *at < to) {
                    run += at - std::mem::replace(&mut ran, at);
                    push(&mut run, Some(Op::Yield), false);
                }
                run += to - std::mem::replace(&mut ran, to);
            } else if let Some(op) = self.op(thread, step, let_go, yields) {
                push(&mut run, Some(op), matches!(step, Step::Wake { .. }));
            }
        }
        let goes_on = logs.told && log.awake_at_end && !self.from.saved;
        let last = match log.has_ended() {
            true => None,
            false if goes_on => Some(Op::Hog),
            false => Some(Op::SleepUntilTaskTime(NEVER_NS)),
        };
        push(&mut run, last, false);
        // Who computes on does so without a way back to user space in between.
        if let [.., Op::Run(Dur::Const(ns)), Op::Hog] = &mut ops[..] {
            *ns = ns.saturating_add(logs.longest_ns());
        }
        if !logs.told {
            mark_end(&mut ops, cut_ns(log), template);
        }
        (self.out.ops[thread], self.out.wakes[thread]) = (entries, woken);
        self.out.demand_ns[thread] = demand;
        self.out.workload.programs[template as usize].ops = ops;
    }

    /// The operation that a step becomes, if it is one.
    fn op(&self, thread: ThreadId, step: &Step, mask: Option<u32>, yields: Yields) -> Option<Op> {
        match *step {
            Step::Run(_) => None,
            Step::Wake {
                thread: wakee,
                perhaps,
                at,
            } => {
                let timer = perhaps && self.from.causes[wakee].is_timer(at, thread);
                let runs = !timer && self.template[wakee].is_some();
                runs.then_some(Op::SemPost(wakee as u32))
            }
            Step::Fork(child) => self.template[child].map(|template| Op::Fork { template }),
            Step::Release(other) => self
                .is_partner(thread, other)
                .then_some(Op::SemPost(other as u32)),
            Step::Released(by) => self
                .is_partner(by, thread)
                .then_some(Op::SemWait(thread as u32)),
            Step::Yield => Some(Op::Yield),
            Step::Left(at) => yields.is_at(at).then_some(Op::Yield),
            Step::Act(act) if act.what == What::Start => self.started(thread, act.time_ns()),
            Step::Act(act) => act.op(self.from.logs.logs.len() as u32, self.first_budget()),
            Step::Nice(nice) => Some(Op::SetNice(nice)),
            Step::Moved => mask.map(Op::SetAffinity),
            Step::Block(block) if block.in_act => None,
            Step::Block(block) => Some(self.wait(thread, block)),
        }
    }

    /// A thread that is there from the start may have its own time begin later.
    pub(super) fn begins(&mut self, thread: ThreadId) {
        let start = |step: &Step| match step {
            Step::Act(act) if act.what == What::Start => Some(act.time_ns()),
            _ => None,
        };
        let at_ns = self.from.logs.logs[thread].steps.iter().find_map(start);
        if let (Some(at_ns), Some(template)) = (at_ns, self.template[thread])
            && self.is_initial(thread)
        {
            self.out.workload.templates[template as usize].start_ns = at_ns;
        }
    }

    /// Its own time begins later than it: of a thread that nobody makes by its template.
    fn started(&self, thread: ThreadId, at_ns: u64) -> Option<Op> {
        if self.from.saved {
            let since_born = i128::from(at_ns) - self.born(thread);
            return Some(Op::SleepUntilTaskTime(
                u64::try_from(since_born).unwrap_or(0),
            ));
        }
        (!self.is_initial(thread)).then_some(Op::StartAt(at_ns))
    }

    /// What threads take from stands behind the semaphores.
    fn first_budget(&self) -> u32 {
        let run = self.from.attributes.run.as_ref();
        let budgets = run.map_or(0, |run| run.objects.budgets);
        (self.out.workload.sems.len() as u32).saturating_sub(budgets)
    }

    fn is_partner(&self, thread: ThreadId, released: ThreadId) -> bool {
        let both = self.template[thread].is_some() && self.template[released].is_some();
        both && self.from.partners.contains(&(thread, released))
    }

    /// The operation that a timer becomes which a thread set at `from` for itself.
    fn timed(&self, thread: ThreadId, from: u64, timer: event::Timer) -> Op {
        if timer.relative {
            return Op::Sleep(Dur::Const(timer.soft_ns.saturating_sub(from).max(1)));
        }
        if self.is_whole() && !self.from.saved {
            // Its clock is that of the run.
            return Op::SleepUntilRunTime(timer.soft_ns);
        }
        let since_born = i128::from(timer.soft_ns) - self.born(thread);
        Op::SleepUntilTaskTime(u64::try_from(since_born).unwrap_or(0))
    }

    /// The operation that a sleep becomes.
    fn wait(&self, thread: ThreadId, block: Block) -> Op {
        let Some((at, by)) = block.woken else {
            // Whatever it was to be woken by, the same call takes the same time.
            return match block.timer.filter(|_| self.is_whole() && !self.from.saved) {
                Some((from, timer)) => self.timed(thread, from, timer),
                None => Op::SleepUntilTaskTime(NEVER_NS),
            };
        };
        if let Some((from, timer)) = block.timed_out() {
            return self.timed(thread, from, timer);
        }
        let causes = &self.from.causes[thread];
        let waker = match by {
            Waker::Thread(waker) => Some(waker),
            Waker::Perhaps(waker) if !causes.is_timer(at, waker) => Some(waker),
            _ => None,
        };
        if waker.is_some_and(|w| self.template[w].is_some()) {
            return Op::SemWait(thread as u32);
        }
        // What was asleep at the start has slept since nobody knows when: only its end counts.
        let first = block.from == self.from.logs.span.0;
        match causes.timer {
            Timer::AfterSleep if !first && !causes.is_tick(at) => {
                let ns = (at - block.from).saturating_sub(self.trim.sleep_ns);
                Op::Sleep(Dur::Const(ns.max(1)))
            }
            _ => {
                // In the tick's own interrupt: the switch that the tick asks for comes after it.
                let at = match causes.tick(at) {
                    Some(tick) => tick + 1,
                    None => at.saturating_sub(self.trim.time_ns),
                };
                let since_born = i128::from(at) - self.born(thread);
                Op::SleepUntilTaskTime(u64::try_from(since_born).unwrap_or(0))
            }
        }
    }
}

/// Marks where a recorded thread is done, and lets one that was cut off by the recording's end
/// compute on for `on` ns.
fn mark_end(ops: &mut Vec<Op>, on: Option<u64>, template: u32) {
    let sleeps = |op: &Op| *op == Op::SleepUntilTaskTime(NEVER_NS);
    let end = ops.iter().position(sleeps).unwrap_or(ops.len());
    let on = on.map(|ns| Op::Run(Dur::Const(ns)));
    let done = [Op::Mark(ALL_DONE), Op::Mark(done_mark(template))];
    ops.splice(end..end, done.into_iter().chain(on));
}
