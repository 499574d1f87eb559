"""Quickstarts of people: employees, insurance customers, players, donors."""

from typing import Final

from connectors.datagen.quickstarts.forms import (
    EMAILS,
    FIRST_NAMES,
    IP,
    LAST_NAMES,
    TIMESTAMP,
    Quickstart,
    between,
    choice,
    counter,
    date,
    matching,
    quickstart,
    timestamp,
)

__all__ = ["PEOPLE"]

_GENDER = choice("Female", "Male", "Other")
_EMPLOYEE = counter("int", 1_000)

PEOPLE: Final[dict[str, Quickstart]] = {
    "campaign_finance": quickstart(
        "datagen.campaign_finance",
        "candidate_id",
        time=counter("long", 1_609_459_200_000, step=1_000),
        candidate_id=matching("C_[0-9]{4}"),
        party_affiliation=choice("DEM", "GRE", "IND", "LIB", "REP"),
        contribution=between("int", 10, 5_000),
    ),
    "insurance_offers": quickstart(
        "insurance.insurance_offers",
        "offer_id",
        offer_id=counter("int", 1),
        offer_name=choice("new_customer", "loyalty", "bundle", "safe_driver", "renewal"),
        offer_url=matching(r"https://offers\.example\.com/[a-z]{6}"),
    ),
    "insurance_customers": quickstart(
        "insurance.insurance_customers",
        "customer_id",
        customer_id=counter("int", 1),
        first_name=choice(*FIRST_NAMES),
        last_name=choice(*LAST_NAMES),
        email=EMAILS,
        gender=_GENDER,
        income=between("int", 20_000, 250_000),
        fico=between("int", 300, 851),
        years_active=between("int", 0, 40),
    ),
    "insurance_customer_activity": quickstart(
        "insurance.insurance_customer_activity",
        "activity_id",
        activity_id=counter("int", 1),
        customer_id=between("int", 1, 1_000),
        activity_type=choice("branch_visit", "call", "deposit", "mobile_open", "web_open", "withdrawal"),
        propensity_to_churn=between("double", 0.0, 1.0),
        ip_address=IP,
    ),
    "gaming_games": quickstart(
        "gaming.gaming_games",
        "id",
        id=counter("int", 1_000),
        room_name=choice("Attic", "Arena", "Cellar", "Garden", "Lagoon", "Tower"),
        created_date=TIMESTAMP,
    ),
    "gaming_players": quickstart(
        "gaming.gaming_players",
        "player_id",
        player_id=counter("int", 1_000),
        player_name=choice(*FIRST_NAMES),
        ip=IP,
    ),
    "gaming_player_activity": quickstart(
        "gaming.gaming_player_activity",
        "player_id",
        player_id=between("int", 1_000, 1_100),
        game_room_id=between("int", 1_000, 5_000),
        points=between("int", 10, 501),
        coordinates=matching(r"\[[0-9]{2},[0-9]{2}\]"),
    ),
    "payroll_employee": quickstart(
        "payroll.payroll_employee",
        "employee_id",
        employee_id=_EMPLOYEE,
        first_name=choice(*FIRST_NAMES),
        last_name=choice(*LAST_NAMES),
        age=between("int", 18, 70),
        ssn=matching("9[0-9]{2}-[0-9]{2}-[0-9]{4}"),
        hourly_rate=between("int", 12, 100),
        gender=_GENDER,
        email=EMAILS,
    ),
    "payroll_employee_location": quickstart(
        "payroll.payroll_employee_location",
        "employee_id",
        employee_id=_EMPLOYEE,
        lab=choice("Chemistry", "Imaging", "Materials", "Optics", "Robotics"),
        department_id=between("int", 1, 20),
        arrival_date=date(16_000, 19_000),
    ),
    "payroll_bonus": quickstart(
        "payroll.payroll_bonus",
        "employee_id",
        employee_id=_EMPLOYEE,
        bonus=between("int", 100, 10_000),
        ts=timestamp(step=60_000),
    ),
}
