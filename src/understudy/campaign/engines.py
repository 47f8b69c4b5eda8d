"""Where the runs of a campaign are carried out: on the cores of this machine, or on a Ray cluster.

An engine gives outcomes in any order. A worker that dies takes its runs with it; they are carried
out again, up to `ATTEMPTS` times.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from multiprocessing import get_context
from typing import Any, Protocol, TypeVar

from understudy.campaign.one_run import Outcome
from understudy.campaign.plan import RunSpec
from understudy.errors import NotInstalledError, needs

ATTEMPTS = 5
"""How often a run is tried whose worker dies."""
AHEAD = 4
"""Runs that wait for each worker."""
Made = TypeVar("Made", bound=Outcome)
CarryOut = Callable[[RunSpec], Made]
"""Carries out one run; it is sent to other processes."""


class Engine(Protocol):
    """Carries out runs; takes them one by one, so that there may be any number of them."""

    def __call__(
        self, carry_out: CarryOut[Made], specs: Iterable[RunSpec], workers: int
    ) -> Iterator[Made]: ...


def local(carry_out: CarryOut[Made], specs: Iterable[RunSpec], workers: int) -> Iterator[Made]:
    """A process for each core."""
    again: deque[tuple[RunSpec, int]] = deque()
    fresh = iter(specs)
    while True:
        yield from _one_pool(carry_out, again, fresh, workers)
        if not again:
            return


def _next(
    again: deque[tuple[RunSpec, int]], fresh: Iterator[RunSpec]
) -> tuple[RunSpec, int] | None:
    if again:
        return again.popleft()
    spec = next(fresh, None)
    return None if spec is None else (spec, 1)


def _one_pool(
    carry_out: CarryOut[Made],
    again: deque[tuple[RunSpec, int]],
    fresh: Iterator[RunSpec],
    workers: int,
) -> Iterator[Made]:
    """Runs until everything is done, or until a worker dies: then ``again`` has what it had."""
    under_way: dict[Future[Made], tuple[RunSpec, int]] = {}
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
    try:
        while True:
            while len(under_way) < workers * AHEAD and (due := _next(again, fresh)) is not None:
                try:
                    future = pool.submit(carry_out, due[0])
                except BrokenProcessPool:
                    again.appendleft(due)
                    raise
                under_way[future] = due
            if not under_way:
                return
            done, _ = wait(under_way, return_when=FIRST_COMPLETED)
            for future in done:
                outcome = future.result()
                del under_way[future]
                yield outcome
    except BrokenProcessPool:
        _take_back(under_way, again)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _take_back(
    under_way: Mapping[Future[Made], tuple[RunSpec, int]],
    again: deque[tuple[RunSpec, int]],
) -> None:
    """Runs without a result wait again, first of all."""
    for spec, attempt in reversed(list(under_way.values())):
        if attempt >= ATTEMPTS:
            raise RuntimeError(f"run {spec.number} (seed {spec.seed}): its process dies every time")
        again.appendleft((spec, attempt + 1))


def ray(carry_out: CarryOut[Made], specs: Iterable[RunSpec], workers: int) -> Iterator[Made]:
    """A Ray cluster: that of RAY_ADDRESS, else one that is started on this machine."""
    try:
        import ray  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise NotInstalledError(f"the engine ray {needs('ray')}") from None
    started = not ray.is_initialized()
    if started:
        address = os.environ.get("RAY_ADDRESS")
        local_only: dict[str, Any] = {} if address else {"num_cpus": workers}
        ray.init(address=address, include_dashboard=False, log_to_driver=False, **local_only)
    try:
        carried: Any = ray.remote(max_retries=ATTEMPTS)(_carried)
        place = ray.put(carry_out)
        waiting = iter(specs)
        under_way = [carried.remote(place, spec) for spec in islice(waiting, workers * AHEAD)]
        while under_way:
            (done,), under_way = ray.wait(under_way, num_returns=1)
            yield ray.get(done)
            under_way += [carried.remote(place, spec) for spec in islice(waiting, 1)]
    finally:
        if started:
            ray.shutdown()


def _carried(carry_out: CarryOut[Made], spec: RunSpec) -> Made:
    return carry_out(spec)


ENGINES: Mapping[str, Engine] = {"local": local, "ray": ray}
