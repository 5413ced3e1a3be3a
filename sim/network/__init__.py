"""A network that is used from Python, call by call: `sim.Network` (docs/python.md).

network    what users call; a SimPy process calls the same methods
handles    what calls return: subscriptions, events, deliveries
parts      from what users give (graph, schema, keys) to an overlay and settings
requests   all that was asked for, as rows of a workload and in order
told       the trace so far, for explanations; frames with the user's nodes
files      as an experiment file, and back
"""

from sim.network.handles import Advertisement, Delivery, Event, Subscription
from sim.network.network import Network

__all__ = ["Advertisement", "Delivery", "Event", "Network", "Subscription"]
