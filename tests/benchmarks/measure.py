"""What is measured around a closed loop of jobs: time, CPU, disk flushes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Figures:
    """One run. Latencies are milliseconds; flushes are the whole machine's."""

    jobs: int
    seconds: float
    latencies: tuple[float, ...]
    cpu_ms_per_job: float
    flushes_per_job: float | None

    @property
    def per_second(self) -> float:
        return self.jobs / self.seconds

    def quantile(self, share: float) -> float:
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    def as_dict(self) -> dict[str, float | int | None]:
        return {
            "jobs": self.jobs,
            "jobs_per_second": round(self.per_second, 1),
            "p50_ms": round(self.quantile(0.50), 2),
            "p95_ms": round(self.quantile(0.95), 2),
            "p99_ms": round(self.quantile(0.99), 2),
            "max_ms": round(max(self.latencies), 2),
            "cpu_ms_per_job": round(self.cpu_ms_per_job, 2),
            "flushes_per_job": None
            if self.flushes_per_job is None
            else round(self.flushes_per_job, 2),
        }


def flushes() -> int | None:
    """Completed flush requests of all real disks, or None where the kernel does not say."""
    path = Path("/proc/diskstats")
    if not path.exists():
        return None
    total = 0
    for line in path.read_text().splitlines():
        fields = line.split()
        if len(fields) > 18 and not fields[2].startswith(("loop", "ram", "dm-")):
            total += int(fields[18])
    return total


async def closed_loop(
    jobs: int, concurrency: int, one: Callable[[int], Awaitable[None]]
) -> Figures:
    """Run `jobs` jobs, `concurrency` at a time, each as soon as one is done."""
    latencies: list[float] = []
    numbers = iter(range(jobs))

    async def lane() -> None:
        for number in numbers:
            begun = time.perf_counter()
            await one(number)
            latencies.append((time.perf_counter() - begun) * 1000)

    flushed, cpu, begun = flushes(), time.process_time(), time.perf_counter()
    await asyncio.gather(*(lane() for _ in range(concurrency)))
    seconds = time.perf_counter() - begun
    spent, after = time.process_time() - cpu, flushes()
    return Figures(
        jobs=jobs,
        seconds=seconds,
        latencies=tuple(latencies),
        cpu_ms_per_job=spent * 1000 / jobs,
        flushes_per_job=None if flushed is None or after is None else (after - flushed) / jobs,
    )
