"""`make bench`: our unit of work beside its floor, in one run on this machine.

Prints jobs per second, latencies, CPU and disk flushes per job for 1 and 16 jobs in flight with
`synchronous=FULL`, the ratio to the floor, signal → done, and tap → durable decision with 10,000
approvals waiting in the store. Rounds alternate with the floor, so that both see the same machine;
the ratio is the median of the rounds' own ratios. Nothing is asserted about time; a run in which an
effect happened twice or not at all fails.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import platform
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import structlog

from runtime.system import collect_calmly
from tests.benchmarks.floor import Grouped, OneAtATime, job
from tests.benchmarks.measure import Figures, closed_loop
from tests.benchmarks.unit import PENDING_APPROVALS, Unit

GOALS = {1: (0.25, 0.40), 16: (0.20, 0.35)}


async def floor_round(folder: Path, jobs: int, concurrency: int) -> Figures:
    engine = OneAtATime(folder) if concurrency == 1 else Grouped(folder)

    async def one(number: int) -> None:
        for transaction in job(number):
            await engine.run(transaction)

    try:
        return await closed_loop(jobs, concurrency, one)
    finally:
        engine.close()


async def unit_round(folder: Path, jobs: int, concurrency: int) -> Figures:
    unit = await Unit.open(folder)
    try:
        figures = await closed_loop(jobs, concurrency, unit.one)
        await unit.check(jobs)
    finally:
        await unit.close()
    return figures


async def taps(folder: Path, count: int, pending: int) -> dict[str, float]:
    """Latency from a press event to the stored decision, one tap at a time."""
    unit = await Unit.open(folder)
    try:
        await unit.fill(pending)
        figures = await closed_loop(count, 1, lambda number: unit.tap(f"tap-{number}"))
    finally:
        await unit.close()
    return {name: float(value or 0) for name, value in figures.as_dict().items()}


async def signals(folder: Path, count: int) -> dict[str, float]:
    """From the approval's call to done, one job at a time."""
    unit = await Unit.open(folder)
    spent: list[float] = []
    approve = unit.approve

    async def timed(id_: str) -> None:
        spent.append(-time.perf_counter())
        await approve(id_)

    unit.approve = timed  # type: ignore[method-assign] # measures where the signal begins
    try:
        for number in range(count):
            await unit.one(number)
            spent[-1] += time.perf_counter()
    finally:
        await unit.close()
    ordered = sorted(value * 1000 for value in spent)
    return {"p50_ms": round(ordered[len(ordered) // 2], 2), "max_ms": round(ordered[-1], 2)}


async def compare(jobs: int, rounds: int, concurrency: int) -> dict[str, Any]:
    pairs: list[tuple[Figures, Figures]] = []
    for index in range(rounds):
        with tempfile.TemporaryDirectory() as a, tempfile.TemporaryDirectory() as b:
            if index % 2:
                ours = await unit_round(Path(a), jobs, concurrency)
                floor = await floor_round(Path(b), jobs, concurrency)
            else:
                floor = await floor_round(Path(b), jobs, concurrency)
                ours = await unit_round(Path(a), jobs, concurrency)
        pairs.append((ours, floor))
    ratios = [ours.per_second / floor.per_second for ours, floor in pairs]
    middle = sorted(pairs, key=lambda pair: pair[0].per_second)[len(pairs) // 2]
    return {
        "concurrency": concurrency,
        "ours": middle[0].as_dict(),
        "floor": middle[1].as_dict(),
        "ratio": round(statistics.median(ratios), 3),
        "ratios": [round(ratio, 3) for ratio in ratios],
        "first_goal": GOALS[concurrency][0],
        "road_ends_at": GOALS[concurrency][1],
    }


def _row(name: str, figures: dict[str, Any]) -> str:
    flushes = figures["flushes_per_job"]
    return (
        f"  {name:<8}{figures['jobs_per_second']:>9.1f} jobs/s"
        f"   p50 {figures['p50_ms']:>7.2f}   p95 {figures['p95_ms']:>7.2f}"
        f"   p99 {figures['p99_ms']:>7.2f}   max {figures['max_ms']:>7.2f} ms"
        f"   CPU {figures['cpu_ms_per_job']:>5.2f} ms/job"
        f"   flushes {'?' if flushes is None else f'{flushes:.1f}'}/job"
    )


def report(results: dict[str, Any]) -> str:
    head = f"{results['machine']} · SQLite synchronous=FULL · {results['jobs']} jobs a round"
    lines = [f"{head}, {results['rounds']} rounds"]
    for compared in results["compared"]:
        lines.append(f"\n{compared['concurrency']} in flight")
        lines.append(_row("ours", compared["ours"]))
        lines.append(_row("floor", compared["floor"]))
        lines.append(
            f"  ratio   {compared['ratio']:.3f} of the floor"
            f" (rounds {', '.join(f'{ratio:.3f}' for ratio in compared['ratios'])};"
            f" first goal {compared['first_goal']}, road ends at {compared['road_ends_at']})"
        )
    signal, tap = results["signal_to_done"], results["tap_to_decision"]
    lines.append(f"\nsignal → done            p50 {signal['p50_ms']} ms, max {signal['max_ms']} ms")
    lines.append(
        f"tap → durable decision   p50 {tap['p50_ms']} ms, p95 {tap['p95_ms']} ms,"
        f" p99 {tap['p99_ms']} ms, max {tap['max_ms']} ms"
        f" ({results['pending_approvals']:,} approvals waiting; Telegram's own time not included)"
    )
    return "\n".join(lines)


async def measure(jobs: int, rounds: int, pending: int) -> dict[str, Any]:
    compared = [await compare(jobs, rounds, concurrency) for concurrency in (1, 16)]
    with tempfile.TemporaryDirectory() as folder:
        signal = await signals(Path(folder), jobs)
    with tempfile.TemporaryDirectory() as folder:
        tap = await taps(Path(folder), min(jobs, pending), pending)
    return {
        "machine": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "jobs": jobs,
        "rounds": rounds,
        "pending_approvals": pending,
        "compared": compared,
        "signal_to_done": signal,
        "tap_to_decision": tap,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pending", type=int, default=PENDING_APPROVALS)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        cache_logger_on_first_use=True,  # as `bot/logs.py` does
    )
    collect_calmly()  # as the serving process does
    results = asyncio.run(measure(options.jobs, options.rounds, options.pending))
    print(report(results))
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
