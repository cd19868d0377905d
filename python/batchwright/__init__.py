"""The Python side of Batchwright: tokenising (prepare), the planner (plan), and marking a loop's steps (step)."""
from .plan import PlanError, plan
from .steps import step

__all__ = ["PlanError", "plan", "step"]
