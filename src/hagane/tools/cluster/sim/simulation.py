"""The simulation itself: a heap of events, and the rules of a cluster.

At one instant, first come due events (pods end, nodes fail), then submitters speak in their
order, then the scheduler is asked until it has nothing more to say, then metrics are written.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count

from hagane.events import EventHeap, EventLog, Scheduled
from hagane.tools.cluster.errors import InvalidManifest, SchedulerFault
from hagane.tools.cluster.fragmentation import Kind, Workload, frequent, kind_of
from hagane.tools.cluster.model.objects import Pod
from hagane.tools.cluster.sim.accounting import Accounting, endless
from hagane.tools.cluster.sim.actions import Bind, Delete, Evict, Submit, Terminate, Update
from hagane.tools.cluster.sim.collection import rare_collection
from hagane.tools.cluster.sim.life import Life, Running
from hagane.tools.cluster.sim.options import Options
from hagane.tools.cluster.sim.ports import Metrics, Pending, Queue, Scheduler, Submitter
from hagane.tools.cluster.sim.snapshot import metrics_line
from hagane.tools.cluster.sim.tainting import Tainting
from hagane.tools.cluster.state import Cluster

# The first events of one instant.
RANK_END, RANK_FAULT, RANK_SUBMIT, RANK_SCHEDULE, RANK_METRICS = range(5)

Action = Callable[[], None]
_DEFAULTS = Options()
# Seconds after which no pod backs off any more for room that was news.
_BACKED_OFF = 60.0


class Simulation:
    """One run over a cluster.

    Args:
        cluster: the nodes, and pods that already run.
        scheduler: places pods.
        submitters: send pods; asked in this order.
        options: how to run.
        log: where events go.
        on_metrics: called with (clock, metrics) at the interval of the options.
    """

    def __init__(
        self,
        cluster: Cluster,
        scheduler: Scheduler,
        submitters: Sequence[Submitter] = (),
        options: Options = _DEFAULTS,
        log: EventLog | None = None,
        on_metrics: Sequence[Callable[[float, Metrics], None]] = (),
    ):
        self.cluster = cluster
        self.scheduler = scheduler
        self.options = options
        self.log = log if log is not None else EventLog(keep=False)
        self.heap: EventHeap[Action] = EventHeap()
        self.queue = Queue()
        self.books = Accounting(cluster)
        self.life = Life(self)
        self.tainting = Tainting(self)
        self.submitters = {f"{s.name}#{i}": s for i, s in enumerate(submitters)}
        self.on_metrics = on_metrics
        self.on_done: list[Callable[[Pod, str, dict[str, float]], None]] = []
        self.freed: set[int] = set()
        self.failed_on: dict[str, int] = {}
        # Why pods that run now had to wait: the last failed attempt.
        self.reasons: dict[str, str] = {}
        # The same of all pods that were bound after waiting: reason, and seconds of each.
        self.waits: dict[str, list[float]] = {}
        self.changed = False
        self._kinds: dict[Kind, int] = {}
        self._workload: tuple[int, Workload | None] = (0, None)
        self._due: dict[str, Scheduled[Action]] = {}
        self._called: dict[str, float] = {}
        self._wake: float | None = None
        self._wakes = 0
        self._measuring = False
        self._background = 0
        self._fruitless = 0
        self._news = 0.0
        scheduler.attach(self)
        for submitter in submitters:
            submitter.attach(self)

    @property
    def clock(self) -> float:
        """Seconds of simulated time since the start."""
        return self.heap.now

    def at(self, time: float, action: Action, rank: int = RANK_FAULT) -> None:
        """Let something happen at a time."""
        self.heap.push(max(time, self.clock), action, rank)

    def background(self, time: float, action: Action) -> None:
        """Let something happen that is no reason to go on when all else is done."""

        def act() -> None:
            self._background -= 1
            action()

        self._background += 1
        self.at(time, act, RANK_FAULT)

    def run(
        self,
        progress: Callable[[float], None] | None = None,
        more: Callable[[], bool] | None = None,
    ) -> dict[str, object]:
        """Run to the end and return the summary.

        Args:
            progress: Called with the time after each instant.
            more: Called when nothing is left to happen: waits for news from outside, on which the
                scheduler is asked again; false ends the run.

        Raises:
            SchedulerFault: if the scheduler breaks a rule; the log holds all that came before.
        """
        try:
            with rare_collection():
                self.begin()
                while True:
                    while self.step():
                        if progress is not None:
                            progress(self.clock)
                    if more is None or not more():
                        break
                    self.changed = True
                    self._schedule()
            for pending in self.queue.entries():
                if pending.why:
                    self.log.write(self.clock, "pending", pod=pending.pod.key, why=pending.why)
        finally:
            self.log.flush()
        return self.summary()

    def begin(self) -> None:
        """Start pods that run already, and set the first calls."""
        for record in self.cluster.nodes():
            for pod in list(record.pods.values()):
                self.life.resume(pod, record.row)
        for key in self.submitters:
            self._call_at(key, 0.0)
        if self.options.metrics_every is not None:
            self._measuring = True
            self.at(self.options.metrics_every, self._metrics, RANK_METRICS)
        self.changed = True

    def step(self) -> bool:
        """Let the next instant happen; return whether there was one."""
        time = self.heap.peek()
        until = self.options.until
        if time is None and not self.changed:
            return False
        if time is not None and until is not None and time > until:
            self.books.advance(until, len(self.queue))
            self.heap.now = max(self.heap.now, until)
            return False
        if self._idle() or self._lull():
            return False
        if time is not None:
            self.books.advance(time, len(self.queue))
            while self.heap.peek() == time:
                self.heap.pop()()
        self._schedule()
        return True

    def summary(self) -> dict[str, object]:
        """Return the sums of the run so far."""
        self.books.advance(self.clock, len(self.queue))
        return {
            "scheduler": self.scheduler.name,
            **self.books.summary(self.clock),
            "pending": len(self.queue),
            "running": len(self.life.running),
            "events": self.log.count,
        }

    def workload(self) -> Workload | None:
        """Return the kinds of pods that have come, learned anew at every doubling."""
        count = self.books.counts["submitted"]
        if count >= 2 * max(self._workload[0], 1) or (count and not self._workload[0]):
            self._workload = (count, frequent(self._kinds))
        return self._workload[1]

    # Pods

    def submit(self, pod: Pod, submitted: float | None = None) -> None:
        """Let a pod into the queue, or onto the node it names.

        Raises:
            InvalidManifest: if its name is taken.
        """
        if pod.key in self.queue or pod.key in self.cluster.where:
            raise InvalidManifest(f"duplicate pod {pod.key!r}: one of that name is in the cluster")
        now = self.clock
        if submitted is None:
            self.books.counts["submitted"] += 1
            kind = kind_of(pod)
            self._kinds[kind] = self._kinds.get(kind, 0) + 1
            self.log.write(now, "submit", pod=pod.key)
        self.queue.add(Pending(pod, now if submitted is None else submitted, now))
        self.scheduler.added(pod, now)
        self.changed = True

    def delete(self, key: str, why: str = "deleted") -> bool:
        """Delete a pod wherever it is; return whether it was anywhere."""
        pending = self.queue.remove(key)
        if pending is not None:
            self.scheduler.gone(pending.pod, self.clock)
            self.books.counts["deleted"] += 1
            self.log.write(self.clock, "delete", pod=key, why=why)
            self._tell(pending.pod)
            return True
        running = self.life.running.get(key)
        if running is None:
            return False
        self.life.terminate(running, why)
        return True

    def update(self, pod: Pod) -> bool:
        """Replace the manifest of a pending pod; return whether there was one."""
        pending = self.queue.remove(pod.key)
        if pending is None:
            self.log.write(self.clock, "update-missed", pod=pod.key)
            return False
        self.scheduler.gone(pending.pod, self.clock)
        self.queue.add(Pending(pod, pending.submitted, self.clock))
        self.scheduler.added(pod, self.clock)
        self.log.write(self.clock, "update", pod=pod.key)
        self.changed = True
        return True

    def bind(self, action: Bind) -> None:
        """Put a pending pod on a node.

        Raises:
            SchedulerFault: if the pod is not pending, or the node is unknown or full.
        """
        key, name, cluster = action.key, action.node, self.cluster
        pending = self.queue.get(key)
        if pending is None:
            where = cluster.where.get(key)
            if where is not None:
                raise self._fault(
                    "a pod is bound once",
                    f"scheduler {self.scheduler.name!r} bound pod {key!r} to node {name!r}, but "
                    f"it is bound to {cluster.records[where].node.name!r} already",
                )
            raise self._fault(
                "only pending pods are bound",
                f"scheduler {self.scheduler.name!r} bound pod {key!r}, which is not pending",
            )
        row = cluster.rows.get(name)
        if row is None:
            raise self._fault(
                "a pod is bound to a node of the cluster",
                f"scheduler {self.scheduler.name!r} bound pod {key!r} to node {name!r}, which "
                "does not exist",
            )
        shortage = self.life.shortage(pending.pod, row)
        if shortage and self.options.overcommit == "fault":
            raise self._fault(
                "a node's pods request at most what is allocatable",
                f"scheduler {self.scheduler.name!r} bound pod {key!r} to node {name!r}, which "
                f"is full: {shortage}",
            )
        self.queue.remove(key)
        self.books.counts["bound"] += 1
        if shortage:
            self.books.counts["failed"] += 1
            self.failed_on[name] = self.failed_on.get(name, 0) + 1
            self.log.write(self.clock, "fail", pod=key, node=name, why="OverCapacity")
            self._tell(pending.pod)
            return
        if pending.why:
            self.reasons[key] = pending.why
            self.waits.setdefault(pending.why, []).append(self.clock - pending.queued)
            self.log.write(self.clock, "bind", pod=key, node=name, waited_for=pending.why)
        else:
            self.log.write(self.clock, "bind", pod=key, node=name)
        self.life.start(pending, row, action.devices)
        self.changed = True

    def left(self, running: Running, outcome: str) -> None:
        """Account for a pod that has left its node."""
        self.freed.add(running.row)
        self.changed = True
        if self.on_done:
            times = {
                "submitted": running.submitted,
                "bound": running.bound,
                "finished": self.clock,
                "work": running.work,
            }
            for listener in self.on_done:
                listener(running.pod, outcome, times)
        self.reasons.pop(running.pod.key, None)
        if outcome in ("preempted", "lost") and self.options.resubmit:
            pod = replace(
                running.pod,
                node_name="",
                deleting=False,
                started=None,
                nominated="",
                phase="Pending",
            )
            self.life.remember(running)
            self.submit(pod, running.submitted)
        else:
            phase = {"succeeded": "Succeeded", "failed": "Failed"}.get(outcome, "")
            if self.submitters:
                self._tell(running.pod.with_changes(phase=phase))

    def nodes_changed(self, rows: set[int]) -> None:
        """Take in that nodes have come, gone or changed."""
        self.freed |= rows
        self.changed = True
        self.books.refresh()
        self.tainting.changed(rows)

    # Turns

    def join(self, submitter: Submitter) -> None:
        """Take in another submitter, which is asked at once."""
        place = next(
            i for i in count(len(self.submitters)) if f"{submitter.name}#{i}" not in self.submitters
        )
        key = f"{submitter.name}#{place}"
        submitter.attach(self)
        self.submitters[key] = submitter
        self._call_at(key, self.clock)

    def ask(self, submitter: Submitter) -> None:
        """Let a submitter speak at this instant, as it has changed."""
        for key, each in self.submitters.items():
            if each is submitter:
                self._call_at(key, self.clock)

    def dismiss(self, submitter: Submitter) -> None:
        """Ask a submitter no more."""
        self.submitters = {k: each for k, each in self.submitters.items() if each is not submitter}

    def _submit(self, key: str) -> None:
        self._due.pop(key, None)
        submitter = self.submitters.get(key)
        if submitter is None:
            return
        now = self.clock
        self._called[key] = now
        for action in submitter.submit(now, self.cluster, metrics_line(self)):
            match action:
                case Submit(pod):
                    self.submit(pod)
                case Delete(name):
                    if not self.delete(name):
                        self.log.write(now, "delete-missed", pod=name)
                case Update(pod):
                    self.update(pod)
                case Terminate():
                    self.log.write(now, "terminate", submitter=submitter.name)
                    self.submitters.pop(key, None)
                case other:
                    raise InvalidManifest(
                        f"submitter {submitter.name!r} returned {other!r}: expected Submit, "
                        "Delete, Update or Terminate"
                    )
        if key in self.submitters:
            self._call_again(key)

    def _call_again(self, key: str) -> None:
        """Set the next call of a submitter, by its own wish or at the next tick."""
        now = self.clock
        following = self.submitters[key].next_time(now)
        if following is None:
            following = now + (self.options.tick or self.options.poll)
        if following < math.inf:
            self._call_at(key, max(following, now))

    def _call_at(self, key: str, time: float) -> None:
        if self.options.tick is not None:
            time = _align(time, self.options.tick)
            if time <= self._called.get(key, -1.0):
                time += self.options.tick
        due = self._due.get(key)
        if due is not None and due.time <= time:
            return
        if due is not None:
            self.heap.cancel(due)
        self._due[key] = self.heap.push(time, lambda: self._submit(key), RANK_SUBMIT)

    def _schedule(self) -> None:
        due = self._wake is not None and self._wake <= self.clock
        if not (self.changed or due):
            return
        tick = self.options.tick
        if tick is not None and _align(self.clock, tick) > self.clock:
            self._wake_at(_align(self.clock, tick))
            return
        self.changed, self._wake = False, None
        if self.freed:
            rows, self.freed = self.freed, set()
            # Room that is news now may be used only after a back-off.
            self._fruitless, self._news = 0, self.clock
            self.scheduler.freed(rows, self.clock, self.cluster)
        self._fruitless += 1
        for action in self.scheduler.schedule(self.clock, self.queue, self.cluster):
            self._fruitless = 0
            match action:
                case Bind():
                    self.bind(action)
                case Evict(key, by):
                    self._evict(key, by)
                case other:
                    raise self._fault(
                        "a scheduler binds or evicts",
                        f"scheduler {self.scheduler.name!r} returned {other!r}: expected Bind or "
                        "Evict",
                    )
        # Binding a pod is no news to the scheduler that bound it.
        self.changed = False
        if self.freed:
            self.changed = True
        following = self.scheduler.next_time(self.clock)
        if following is not None and len(self.queue):
            self._wake_at(following)

    def _wake_at(self, time: float) -> None:
        if self.options.tick is not None:
            time = _align(time, self.options.tick)
        if self._wake is None or time < self._wake:
            self._wake = time
            self._wakes += 1
            self.at(time, self._woken, RANK_SCHEDULE)

    def _woken(self) -> None:
        self._wakes -= 1

    def _evict(self, key: str, by: str) -> None:
        running = self.life.running.get(key)
        if running is None:
            raise self._fault(
                "only bound pods are evicted",
                f"scheduler {self.scheduler.name!r} evicted pod {key!r}, which is not bound",
            )
        if self.books.preempt(key, by) and self.options.until is None:
            raise self._fault("preemption ends", endless(key, by, self.node_name(running.row)))
        self.log.write(self.clock, "evict", pod=key, node=self.node_name(running.row), by=by)
        self.life.terminate(running, "preempted")

    def _metrics(self) -> None:
        line = metrics_line(self)
        for writer in self.on_metrics:
            writer(self.clock, line)
        assert self.options.metrics_every is not None
        self.at(self.clock + self.options.metrics_every, self._metrics, RANK_METRICS)

    def _idle(self) -> bool:
        """Return whether nothing is left to do, as the original's loop ends."""
        return not self.submitters and not len(self.queue) and not self.life.running

    def _lull(self) -> bool:
        """Return whether only metrics and futile retries are due, now and for ever."""
        waiting = len(self.heap) - self._wakes - self._measuring - self._background
        if waiting or self.changed or self._fruitless <= 2 * (self._wakes > 0):
            return False
        # Pods whose back-offs end one after the other have all had their turn by then.
        following = self.heap.peek()
        return following is None or following - self._news > _BACKED_OFF

    def _tell(self, pod: Pod) -> None:
        for key, submitter in list(self.submitters.items()):
            submitter.finished(pod, self.clock)
            if submitter.next_time(self.clock) is not None:
                self._call_again(key)

    def node_name(self, row: int) -> str:
        """Return the name of a row's node."""
        return self.cluster.records[row].node.name

    def _fault(self, rule: str, message: str) -> SchedulerFault:
        self.log.write(self.clock, "fault", rule=rule, message=message)
        self.log.flush()
        return SchedulerFault(rule, f"at {self.clock:g} s: {message}")


def _align(time: float, tick: float) -> float:
    """Return the first multiple of the tick at or after a time."""
    return -(-time // tick) * tick
