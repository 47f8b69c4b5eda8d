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
from typing import Any

from understudy.campaign.one_run import Outcome, run_one
from understudy.campaign.plan import PlanFile, RunSpec
from understudy.errors import NotInstalledError, needs

ATTEMPTS = 5
"""How often a run is tried whose worker dies."""
AHEAD = 4
"""Runs that wait for each worker."""
Engine = Callable[[PlanFile, Iterable[RunSpec], int], Iterator[Outcome]]


def local(planned: PlanFile, specs: Iterable[RunSpec], workers: int) -> Iterator[Outcome]:
    """A process for each core."""
    waiting: deque[tuple[RunSpec, int]] = deque((spec, 1) for spec in specs)
    while waiting:
        yield from _one_pool(planned, waiting, workers)


def _one_pool(
    planned: PlanFile, waiting: deque[tuple[RunSpec, int]], workers: int
) -> Iterator[Outcome]:
    """Runs until everything is done, or until a worker dies: then ``waiting`` has what is left."""
    under_way: dict[Future[Outcome], tuple[RunSpec, int]] = {}
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
    try:
        while waiting or under_way:
            while waiting and len(under_way) < workers * AHEAD:
                spec, attempt = waiting.popleft()
                under_way[pool.submit(run_one, planned, spec)] = spec, attempt
            done, _ = wait(under_way, return_when=FIRST_COMPLETED)
            for future in done:
                outcome = future.result()
                del under_way[future]
                yield outcome
    except BrokenProcessPool:
        _take_back(under_way, waiting)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _take_back(
    under_way: Mapping[Future[Outcome], tuple[RunSpec, int]],
    waiting: deque[tuple[RunSpec, int]],
) -> None:
    """Runs without a result wait again, first of all."""
    for spec, attempt in reversed(list(under_way.values())):
        if attempt >= ATTEMPTS:
            raise RuntimeError(f"run {spec.number} (seed {spec.seed}): its process dies every time")
        waiting.appendleft((spec, attempt + 1))


def ray(planned: PlanFile, specs: Iterable[RunSpec], workers: int) -> Iterator[Outcome]:
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
        carry_out = ray.remote(max_retries=ATTEMPTS)(run_one)
        place = ray.put(planned)
        waiting = iter(specs)
        under_way = [carry_out.remote(place, spec) for spec in islice(waiting, workers * AHEAD)]
        while under_way:
            (done,), under_way = ray.wait(under_way, num_returns=1)
            yield ray.get(done)
            under_way += [carry_out.remote(place, spec) for spec in islice(waiting, 1)]
    finally:
        if started:
            ray.shutdown()


ENGINES: Mapping[str, Engine] = {"local": local, "ray": ray}
