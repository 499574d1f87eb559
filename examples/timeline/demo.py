"""A public API to a topic and on to a web hook, from two config files: ``python examples/timeline/demo.py``.

It needs no network: the server is in ``server.py``. Everything it makes is in ``build/timeline``.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(ROOT), str(HERE)]

from server import POSTS, Timeline, serving  # noqa: E402

from worker.embedded.broker.server import BrokerConfig, EmbeddedBroker  # noqa: E402

BUILD = ROOT / "build" / "timeline"
_PATIENCE = 120.0


def main() -> int:
    """Run the demo; the exit status."""
    os.chdir(ROOT)
    shutil.rmtree(BUILD, ignore_errors=True)
    BUILD.mkdir(parents=True)
    with serving() as timeline, EmbeddedBroker(BrokerConfig(folder=BUILD / "broker", port=0)).lease() as broker:
        print(f"The timeline is at {timeline.url}, Kafka at {broker.bootstrap_servers}")
        environ = {**os.environ, "SLUICE_DEMO_BOOTSTRAP": broker.bootstrap_servers, "TIMELINE_URL": timeline.url}
        files = [str(HERE / name) for name in ("worker.properties", "source.properties", "sink.properties")]
        command = [str(Path(sys.executable).parent / "sluice"), "standalone", *files]
        process = subprocess.Popen(command, env=environ)
        try:
            complete = wait_for_posts(timeline)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()
    wanted = {post["id"] for post in POSTS}
    print(f"{len(timeline.posted)} posts of {len(wanted)} were taken by the hook, after {timeline.requests} requests")
    return 0 if complete else 1


def wait_for_posts(timeline: Timeline) -> bool:
    """Wait until the hook has every post."""
    deadline = time.monotonic() + _PATIENCE
    wanted = {post["id"] for post in POSTS}
    while {post["id"] for post in timeline.posted} != wanted:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


if __name__ == "__main__":
    sys.exit(main())
