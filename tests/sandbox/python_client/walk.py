"""Reads the interface's document row by row against a running `annals sandbox`: walk.py PROGRAM DIRECTORY"""

import os
import sys

import endpoints
import knobs
import records
import states
from client import Judge, Service

FIXED = ("--teams", "3", "--days", "30", "--sessions-per-day", "60", "--seed", "7", "--now", "2026-11-20T13:00:00Z")


def walk(j, part, *arguments):
    """Runs one part; an answer that prevents the next step is a deviation too."""
    j.section = part.__name__
    try:
        part(*arguments)
    except (KeyError, IndexError, TypeError, AttributeError, StopIteration, ValueError, OSError) as broken:
        j.check("went on to its end", False, broken)


def main(program, directory):
    place = os.path.join(directory, "saved.json")
    s, j = Service(program, *FIXED, "--save", place), Judge()
    parts = [endpoints.team, records.history, endpoints.computers, endpoints.annotations, endpoints.access, endpoints.installers,
             endpoints.users, endpoints.sso, endpoints.groups, states.error_bodies, states.authentication, states.remote_access,
             states.removal, states.two_factor, states.shared_sso, states.computer_removed, states.every_change_makes_an_event,
             knobs.switches, states.guards]
    try:
        for part in parts:
            walk(j, part, s, j)
        walk(j, knobs.clock, program, s, j)
        walk(j, knobs.faults, program, s, j)
        walk(j, knobs.state, program, s, place, j)
    finally:
        s.process.kill()
    for deviation in j.deviations:
        print(deviation)
    print(f"{j.rows} checks, {len(j.deviations)} deviations")
    return 1 if j.deviations else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
