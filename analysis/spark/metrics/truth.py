"""Truth: what the oracle outside the brokers found, and what the run's record says besides.

The counts in MUST_BE_ZERO must be 0 in every run. Deliveries lost while a subscription was still on its way, to a full
queue or during a failure are expected in such scenarios and are counted apart. Where the oracle judged nothing they are
unknown; earlier versions judged everything, and did not count what was due.
"""

from __future__ import annotations

from analysis.spark.metrics.definition import Metric, ratio
from broker.trace.schema import LOSSES, MUST_BE_ZERO


def _from_record(name: str, title: str, definition: str, unit: str = "deliveries") -> Metric:
    sql = f"if(judged_share > 0, {name}, null)" if name in {*MUST_BE_ZERO, *LOSSES, "unavoidable"} else ""
    return Metric(name, title, unit, definition, f"run record: {name}", sql)


def _of_failover(name: str, title: str, definition: str, unit: str) -> Metric:
    """Unknown without fail-over, where nobody sends heartbeats."""
    return Metric(name, title, unit, definition, f"run record: {name}", f"if(heartbeats > 0, {name}, null)")


METRICS = (
    _from_record("missed", "missed deliveries", "Required deliveries that did not happen; must be 0."),
    _from_record("duplicates", "duplicate deliveries", "Deliveries that happened more than once; must be 0."),
    _from_record("spurious", "spurious deliveries", "Deliveries of events that do not match; must be 0."),
    _from_record("strays", "stray events",
                 "Events sent over a link although nothing in the routing table matched them; must be 0. Unknown if "
                 "subscriptions existed before time 0.", "messages"),
    _from_record("wrong_times", "wrong times",
                 "Hops and deliveries whose recorded time is not the sum of the links and waits on their way, and "
                 "messages served while their broker served another; must be 0.", "records"),
    _from_record("unaccounted", "unaccounted deliveries",
                 "How far due deliveries are from those delivered plus those missed for any cause; must be 0."),
    _from_record("missed_transient", "missed while converging",
                 "Deliveries missed because the subscription was still on its way when the event was published."),
    _from_record("missed_dropped", "missed after a drop",
                 "Deliveries missed because a full queue dropped a copy of the event."),
    _from_record("missed_fault", "missed during a failure",
                 "Deliveries missed while something was down or being repaired."),
    _from_record("missed_refused", "refused at the publisher's broker",
                 "Deliveries missed because the publisher's own broker had no room for the event."),
    _from_record("missed_unpublished", "publisher's broker down",
                 "Deliveries missed because the publisher's own broker was down."),
    _from_record("unavoidable", "unavoidably lost",
                 "Deliveries lost for whatever cause that flooding the graph would have lost too: no way to their "
                 "brokers stayed up."),
    Metric("unavoidable_share", "unavoidably lost", "share",
           "Share of the due deliveries that no routing could have made, because no way through the graph stayed up.",
           "run record: unavoidable ÷ due",
           f"if(judged_share > 0, {ratio('unavoidable', 'due')}, null)"),
    Metric("spare_share", "lost though ways were up", "share",
           "Share of the due deliveries that were lost though flooding over all links, spare ones included, would have "
           "made them. Only known where the graph has cycles.",
           "run record: (due − due_delivered − unavoidable) ÷ due",
           f"if(judged_share > 0 and links + spare_links >= brokers, "
           f"{ratio('(due - due_delivered - unavoidable)', 'due')}, null)"),
    Metric("delivery_ratio_during", "delivery ratio while something was down", "share",
           "Share of the due deliveries that were made, of events published while a broker or link was down.",
           "run record: due_delivered_during ÷ due_during",
           ratio("due_delivered_during", "due_during")),
    Metric("floor_during", "delivery ratio of flooding meanwhile", "share",
           "The same if every event had been flooded over all links of the graph: no routing delivers more.",
           "run record: 1 − unavoidable_during ÷ due_during",
           f"1 - {ratio('unavoidable_during', 'due_during')}"),
    Metric("delivery_ratio_after", "delivery ratio afterwards", "share",
           "The same of events published when something had been down and all was back.",
           "run record: due_delivered_after ÷ due_after",
           ratio("due_delivered_after", "due_after")),
    Metric("detection_mean", "detection, mean", "ms",
           "Time from a failure until neighbours have missed its heartbeats for long enough; only with fail-over.",
           "run record: detecting ÷ detections",
           ratio("detecting", "detections")),
    _of_failover("switchovers", "switch-overs", "How often events began to follow other trees.", "switch-overs"),
    Metric("switchover_mean", "switch-over, mean", "ms",
           "Time from the notice that something is down, or may be used again, until events follow other trees.",
           "run record: switching ÷ switchovers",
           ratio("switching", "switchovers")),
    _of_failover("switchover_messages", "control messages of switch-overs",
                 "Messages over links by which tables for other trees were filled and old ones given up.", "messages"),
    _of_failover("heartbeats", "heartbeats",
                 "Messages by which neighbours show that they are up; worked out, not simulated.", "messages"),
    _from_record("judged_share", "judged events",
                 "Share of the events whose deliveries the oracle judged; its counts are of these.", "share"),
    Metric("delivery_ratio", "delivery ratio", "share",
           "Share of the due deliveries that were made. Due are those to the k best subscriptions in force, of every "
           "event that a client tried to publish: what is lost for whatever reason counts.",
           "run record: due_delivered ÷ due",
           ratio("due_delivered", "due")),
    Metric("control_per_event", "control messages per event", "messages",
           "What it costs per event of the workload to keep the routing tables up to date.",
           "control messages over links ÷ events",
           ratio("(coalesce(control_messages, 0) + preload_messages)", "events")),
    Metric("simulated_time", "simulated time", "ms",
           "Simulated time when nothing was under way any more.",
           "run record: finished",
           "finished"),
    _from_record("wall_seconds", "run time", "Real time that the simulation took; depends on the machine.", "s"),
)  # fmt: skip
