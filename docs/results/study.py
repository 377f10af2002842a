"""The page of a study on dSprites.

`python docs/results/study.py train 2` does what is left of study.toml with two workers (whatever was cut off goes on where it
was), writes its report and keeps the table and the charts beside the page; `python docs/results/study.py picture` takes the
picture of the report for the README, with Chromium; `python docs/results/study.py` writes study.md from what is kept.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
FOLDER, KEPT = HERE.parents[1] / "runs" / "study", HERE / "study"
CHARTS = ("violins", "strengths", "trade-off", "plane", "correlations", "variance", "labels", "flips", "udr")


def train(workers: int) -> None:
    """Trains, measures, reports and keeps."""
    from elboroom.studies import Study, run_study, write_report
    from elboroom.studies.engines.pool import Pool

    counts = run_study(Study.read(HERE / "study.toml"), FOLDER, Pool(workers))
    print(f"{counts['done']} done, {counts['failed']} failed")
    write_report(FOLDER)
    KEPT.mkdir(exist_ok=True)
    for name in ("table.parquet", "timings.csv"):
        shutil.copy(FOLDER / name, KEPT / name)
    for chart in CHARTS:
        for suffix in ("svg", "csv"):
            shutil.copy(FOLDER / "figures" / f"{chart}.{suffix}", KEPT / f"{chart}.{suffix}")


def picture() -> None:
    """The top of the report as a browser shows it, docs/study.png."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("there is no Chromium here to take a picture with")
    with tempfile.TemporaryDirectory() as profile:
        quiet = [
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-sync",
        ]
        quiet += [
            "--disable-component-update",
            f"--user-data-dir={profile}",
            "--hide-scrollbars",
            "--window-size=1100,1500",
        ]
        shot = f"--screenshot={HERE.parent / 'study.png'}"
        page = (FOLDER / "report.html").as_uri()
        subprocess.run([browser, "--headless", "--no-sandbox", *quiet, shot, page], check=True, capture_output=True)


def main(words: list[str]) -> None:
    """Does the study, or writes the page."""
    if words[:1] == ["train"]:
        train(int(words[1]) if len(words) > 1 else 2)
    elif words[:1] == ["picture"]:
        picture()
    else:
        sys.path.insert(0, str(HERE))
        from study_page import page

        (HERE / "study.md").write_text(page(KEPT))


if __name__ == "__main__":
    main(sys.argv[1:])
