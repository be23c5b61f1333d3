"""NIST's own programs (Debian package sctk), as oracles of the tests."""

import re
import subprocess

from support.programs import program


def sctk():
    """The program; without it the test is skipped."""
    return program("sctk")


def write_trn(path, texts):
    path.write_text("".join(f"{text} (s-{i:05d})\n" for i, text in enumerate(texts)), encoding="utf-8")


def sclite_counts(folder, references, hypotheses, *options):
    """Hits, substitutions, deletions and insertions of each utterance."""
    write_trn(folder / "ref.trn", references)
    write_trn(folder / "hyp.trn", hypotheses)
    command = [
        sctk(),
        "sclite",
        "-s",
        "-e",
        "utf-8",
        "-r",
        "ref.trn",
        "trn",
        "-h",
        "hyp.trn",
        "trn",
        "-i",
        "rm",
        *options,
    ]
    done = subprocess.run([*command, "-o", "pralign", "stdout"], cwd=folder, capture_output=True, check=True)
    text = done.stdout.decode("utf-8", "replace")
    found = re.findall(r"id: \(s-(\d+)\)\s+Scores: \(#C #S #D #I\) (\d+) (\d+) (\d+) (\d+)", text)
    counts = {int(number): tuple(map(int, rest)) for number, *rest in found}
    return [counts[i] for i in range(len(references))]


def sc_stats_mapsswe(folder, references, first, second):
    """Segments, mean, standard deviation and Z of the matched-pair test."""
    for name, texts in (("ref", references), ("a", first), ("b", second)):
        write_trn(folder / f"{name}.trn", texts)
    systems = ["-h", "a.trn", "trn", "sysA", "-h", "b.trn", "trn", "sysB"]
    command = [sctk(), "sclite", "-s", "-r", "ref.trn", "trn", *systems, "-i", "rm", "-o", "sgml", "stdout"]
    aligned = subprocess.run(command, cwd=folder, capture_output=True, check=True).stdout
    command = [sctk(), "sc_stats", "-p", "-t", "mapsswe", "-v", "-n", "-"]
    text = subprocess.run(command, cwd=folder, input=aligned, capture_output=True, check=True).stdout.decode()
    number = r"(-?[\d.]+)"
    pattern = rf"# segs: (\d+)\).*?\(mean: {number}\) \(std dev: {number}\) \(Z Stat: {number}\)"
    segs, mean, deviation, z = re.search(pattern, text).groups()
    return int(segs), float(mean), float(deviation), float(z)
