"""Quickstarts of websites: users, page views, clicks."""

from typing import Final

from connectors.datagen.quickstarts.forms import (
    FIRST_NAMES,
    LAST_NAMES,
    Quickstart,
    array,
    between,
    choice,
    counter,
    matching,
    quickstart,
)

__all__ = ["WEB"]

_USER = matching("User_[1-9]")
_REGION = matching("Region_[1-9]")
_GENDER = choice("FEMALE", "MALE", "OTHER")
_REGISTERED = between("long", 1_487_715_775_521, 1_519_273_364_600)

WEB: Final[dict[str, Quickstart]] = {
    "clickstream_codes": quickstart(
        "clickstream.codes",
        "code",
        code=choice(200, 302, 404, 405, 406, 407, kind="int"),
        definition=choice("OK", "Found elsewhere", "Page not found", "Method not allowed", "Not acceptable"),
    ),
    "clickstream": quickstart(
        "clickstream.events",
        "ip",
        ip=choice("111.152.45.45", "111.203.236.146", "111.168.57.122", "111.249.79.93", "122.145.8.244"),
        userid=between("int", 1, 40),
        remote_user=choice("-"),
        time=counter("string", 1),
        _time=counter("long", 1),
        request=choice(
            "GET /index.html HTTP/1.1",
            "GET /site/login.html HTTP/1.1",
            "GET /site/user_status.html HTTP/1.1",
            "GET /images/track.png HTTP/1.1",
            "POST /site/basket HTTP/1.1",
        ),
        status=choice("200", "302", "404", "405", "406", "407"),
        bytes=choice("278", "1289", "2048", "4006", "4096", "14096"),
        referrer=choice("-", "https://www.example.com/", "https://search.example.org/"),
        agent=choice(
            "Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/128.0",
            "Mozilla/5.0 (compatible; ExampleBot/2.1; +https://bot.example.com/)",
        ),
    ),
    "clickstream_users": quickstart(
        "clickstream.users",
        "user_id",
        user_id=counter("int", 1),
        username=matching("[a-z]{4,8}_[1-9][0-9]"),
        registered_at=_REGISTERED,
        first_name=choice(*FIRST_NAMES),
        last_name=choice(*LAST_NAMES),
        city=choice("Berlin", "Dakar", "Lima", "London", "New York", "Osaka", "Paris", "Raleigh"),
        level=choice("Gold", "Platinum", "Silver"),
    ),
    "users": quickstart(
        "ksql.users", "userid", registertime=_REGISTERED, userid=_USER, regionid=_REGION, gender=_GENDER
    ),
    "users_": quickstart(
        "ksql.users",
        "userid",
        registertime=_REGISTERED,
        userid=_USER,
        regionid=_REGION,
        gender=_GENDER,
        interests=array(choice("Books", "Games", "Movies", "News", "Sport", "Travel"), 1, 3),
        contactinfo={
            "type": "map",
            "values": matching("[1-9][0-9]{6}"),
            "arg.properties": {
                "keys": {"options": ["phone", "city", "state", "zipcode"]},
                "length": {"min": 2, "max": 5},
            },
        },
    ),
    "pageviews": quickstart(
        "ksql.pageviews",
        "viewtime",
        viewtime=counter("long", 1, step=10),
        userid=_USER,
        pageid=matching("Page_[1-9][0-9]?"),
    ),
    "ratings": quickstart(
        "ksql.ratings",
        "rating_id",
        rating_id=counter("long", 1),
        user_id=between("int", 1, 20),
        stars=between("int", 1, 6),
        route_id=between("int", 1, 10_000),
        rating_time=counter("long", 1, step=12),
        channel=choice("android", "ios", "ios-test", "iOS", "web", "desktop"),
        message=choice(
            "The seats were comfortable",
            "The flight was an hour late",
            "Friendly crew, thank you!",
            "My bag arrived a day after me",
            "Would book it again",
        ),
    ),
}
