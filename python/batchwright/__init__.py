"""The Python side of Batchwright: tokenising (prepare) and the planner (plan)."""
from .plan import PlanError, plan

__all__ = ["PlanError", "plan"]
