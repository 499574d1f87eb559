"""Quickstarts of operations: vehicles, networks, logs."""

from typing import Any, Final

from connectors.datagen.quickstarts.forms import (
    FIRST_NAMES,
    IP,
    TIMESTAMP,
    Quickstart,
    between,
    choice,
    counter,
    matching,
    quickstart,
    record,
)

__all__ = ["OPERATIONS"]

_VEHICLE = between("int", 1_000, 10_000)
_HOST = matching("host-[0-9]{2}")


def _end(name: str) -> dict[str, Any]:
    """One end of a connection."""
    return record(f"siem_logs.{name}", ip=IP, port=between("int", 1, 65_536))


OPERATIONS: Final[dict[str, Quickstart]] = {
    "fleet_mgmt_description": quickstart(
        "fleet_mgmt.fleet_mgmt_description",
        "vehicle_id",
        vehicle_id=_VEHICLE,
        driver_name=choice(*FIRST_NAMES),
        license_plate=matching("[A-Z]{2}-[0-9]{4}"),
    ),
    "fleet_mgmt_location": quickstart(
        "fleet_mgmt.fleet_mgmt_location",
        "vehicle_id",
        vehicle_id=_VEHICLE,
        location=record(
            "fleet_mgmt.location", latitude=between("double", -90.0, 90.0), longitude=between("double", -180.0, 180.0)
        ),
        ts=TIMESTAMP,
    ),
    "fleet_mgmt_sensors": quickstart(
        "fleet_mgmt.fleet_mgmt_sensors",
        "vehicle_id",
        vehicle_id=_VEHICLE,
        engine_temperature=between("int", 150, 260),
        average_rpm=between("int", 1_800, 5_000),
    ),
    "syslog_logs": quickstart(
        "syslogs.syslog_logs",
        "host",
        name=choice("auth", "cron", "kernel", "mail"),
        type=choice("RFC3164", "RFC5424"),
        message=choice(
            "Accepted publickey for deploy",
            "Connection closed by remote host",
            "Failed password for invalid user admin",
            "Started a scheduled job",
        ),
        host=_HOST,
        version=choice("1"),
        tag=choice("cron", "kernel", "postfix", "sshd"),
        level=between("int", 0, 8),
        facility=choice("auth", "cron", "kern", "mail"),
        severity=between("int", 0, 8),
        appName=choice("cron", "kernel", "postfix", "sshd"),
        remoteAddress=IP,
        rawMessage=matching("<[1-9][0-9]>1 - [a-z]{8}"),
        processId=matching("[1-9][0-9]{3}"),
        messageId=matching("ID[0-9]{2}"),
        deviceVendor=choice("Example"),
        deviceProduct=choice("Gateway", "Router", "Server"),
        deviceVersion=matching(r"[1-9]\.[0-9]"),
        ts=counter("long", 1_609_459_200_000, step=100),
    ),
    "device_information": quickstart(
        "device_information.device_information",
        "device_ip",
        device_ip=IP,
        mac_address=matching("([0-9a-f]{2}:){5}[0-9a-f]{2}"),
        owner=choice(*FIRST_NAMES),
    ),
    "siem_logs": quickstart(
        "siem_logs.siem_logs",
        "hostname",
        hostname=_HOST,
        action=choice("allow", "deny", "teardown"),
        l4=choice("TCP", "UDP"),
        access_group=choice("guests", "inside", "outside"),
        source=_end("source"),
        destination=_end("destination"),
    ),
}
