"""Order inside groups: the last quote before each trade, the mean of the last five
minutes of each sensor, the visits of each user, and what else follows time."""

import pandas
import roost


def seconds(*after):
    """Times after half past nine."""
    return pandas.Timestamp("2026-11-30 09:30") + pandas.to_timedelta(after, "s")


# Quotes and trades: for each trade the last quote of its symbol.
quotes = pandas.DataFrame(
    {
        "at": seconds(0, 2, 5),
        "symbol": ["A", "B", "A"],
        "bid": [10.25, 7.5, 10.5],
    }
)
trades = pandas.DataFrame(
    {
        "at": seconds(4, 5, 1),
        "symbol": ["A", "A", "B"],
        "size": [100, 200, 300],
    }
)
found = roost.merge_asof(trades, quotes, on="at", by="symbol")
print(found)
assert found["bid"].tolist()[:2] == [10.25, 10.5] and found["bid"].isna()[2]
near = roost.merge_asof(
    trades, quotes, on="at", by="symbol", direction="nearest", tolerance="1s"
)
assert near["bid"].tolist() == [10.5, 10.5, 7.5]

# Stays and alarms: all alarms of a room between the begin and the end of a stay.
stays = pandas.DataFrame({"room": [1, 2], "begin": [10, 20], "end": [30, 25]})
alarms = pandas.DataFrame({"room": [1, 2, 1], "at": [30, 20, 12]})
during = roost.interval_join(
    stays, alarms, on="at", between=("begin", "end"), by="room"
)
assert during["at"].tolist() == [12, 20]  # an interval has its begin, but not its end

# Sensors: rows in any order, as they arrived.
sensors = pandas.DataFrame(
    {
        "at": seconds(420, 0, 240, 300),
        "sensor": [1, 1, 1, 2],
        "celsius": [22.0, 20.0, 21.0, 5.0],
    }
)
by_sensor = roost.group_by(sensors, "sensor")
last_minutes = by_sensor["celsius"].rolling("5m", on="at")
sensors["mean"] = last_minutes.mean()
sensors["highest"] = last_minutes.max()
sensors["change"] = by_sensor["celsius"].diff()
assert sensors["mean"].tolist() == [21.5, 20.0, 20.5, 5.0]

# Clicks: a visit ends with a pause of more than half an hour.
clicks = pandas.DataFrame({"user": [7, 8, 7, 7], "minute": [0, 3, 20, 90]})
clicks["visit"] = roost.group_by(clicks, "user").sessions("minute", 30)
assert clicks["visit"].tolist() == [0, 0, 0, 1]
visits = roost.group_by(clicks, ["user", "visit"]).agg(
    clicks=("minute", "count"), begin=("minute", "min"), end=("minute", "max")
)
print(visits)
assert len(visits) == 3

# Hours of each user, changes of a state, and the longest visit of each user.
hours = roost.group_by(clicks, "user").resample(60, on="minute").agg(clicks="count")
assert sorted(zip(hours["user"], hours["minute"], hours["clicks"])) == [
    (7, 0, 2),
    (7, 60, 1),
    (8, 0, 1),
]
states = pandas.DataFrame({"door": [1, 1, 2, 1], "open": [True, True, True, False]})
assert roost.group_by(states, "door")["open"].runs().tolist() == [0, 0, 0, 1]
longest = roost.group_by(visits, "user").top_k(1, by="clicks")
assert longest["clicks"].tolist() == [2, 1]
