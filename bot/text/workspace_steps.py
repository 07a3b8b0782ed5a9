"""Describes the states of set-up and teardown, for pages, the command line and GitHub."""

from runtimes.host import StepRecord, StepState, WorkspaceStep

_NAMES = {WorkspaceStep.SETUP: "set-up", WorkspaceStep.TEARDOWN: "teardown"}


def step_words(record: StepRecord) -> str:
    """Say what happened to an attempt at a step, without the output of its commands."""
    name = f"the {_NAMES[record.step]} of the workspace"
    if record.state is StepState.RUNNING:
        return f"{name} is running"
    if record.ended is None:
        return f"{name} was interrupted"
    time = f"{max(0.0, (record.ended - record.began).total_seconds()):.0f} s"
    match record.state:
        case StepState.DONE:
            return f"{name} took {time}"
        case StepState.EXPIRED:
            return f"{name} reached its time limit after {time}"
        case StepState.FAILED if record.code is not None:
            return f"{name} failed with exit code {record.code} after {time}"
        case StepState.FAILED:
            return f"{name} was killed by a signal after {time}"
        case _:
            return f"{name} was interrupted after {time}"
