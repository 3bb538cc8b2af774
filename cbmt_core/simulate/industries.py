"""The 25 industries: their shares of firms, typical customers and seasons."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["INDUSTRIES", "Industry", "allocate"]


@dataclass(frozen=True)
class Industry:
    """Typical levels of an industry; firms vary around them."""

    name: str
    firms: int
    """Firms in the full economy (Web App. "Illustrative Companies by Industry")."""
    order_value: float
    """Typical value of an order, dollars."""
    frequency: float
    """Typical repeat orders a week of a live customer; only the ratios between industries matter."""
    season: float = 0.04
    """Amplitude of the yearly wave, in logs."""
    peak_week: int = 26
    """Week of the year in which the wave is highest."""
    holidays: dict[str, float] = field(default_factory=dict)
    """Lift in logs in the week of a holiday, by the holiday's name in the calendar."""
    loyalty: float = 0.0
    """Shift of the logit share of customers who never drift away: contracts and habits."""
    nouns: tuple[str, ...] = ()
    """What firms of this industry call themselves."""


GIFTS = {"Black Friday": 0.35, "Cyber Monday": 0.20, "Christmas Day": 0.25}
FLOWERS = {"Valentine's Day": 0.8, "Mother's Day": 0.8, "Christmas Day": 0.45}
FEAST = {"Thanksgiving Day": 0.12, "Christmas Day": 0.10, "Easter": 0.06}
SALES = {"Black Friday": 0.55, "Cyber Monday": 0.30, "Christmas Day": 0.30, "Labor Day": 0.10}
TOYS = {"Black Friday": 0.45, "Cyber Monday": 0.35, "Christmas Day": 0.55}
SPRING = {"Memorial Day": 0.15, "Independence Day": 0.10, "Black Friday": 0.15}

INDUSTRIES: tuple[Industry, ...] = (
    Industry("Apparel & Accessories", 109, 75, 0.020, 0.08, 47, SALES, 0.0, ("Clothing", "Knits", "Atelier")),
    Industry("Auto", 20, 110, 0.012, 0.07, 24, {}, 0.0, ("Auto Care", "Motors", "Tire Works")),
    Industry(
        "Charitable Giving", 4, 60, 0.020, 0.15, 50, {"Christmas Day": 0.5}, 0.2, ("Relief Fund", "Aid")
    ),
    Industry("Department Stores", 21, 65, 0.030, 0.08, 48, SALES, 0.1, ("Stores", "Galleries")),
    Industry("Digital Services", 15, 30, 0.050, 0.02, 4, {}, 0.6, ("Cloud", "Studio", "Security")),
    Industry("Electronics", 4, 170, 0.012, 0.06, 49, TOYS, 0.0, ("Devices", "Audio")),
    Industry("Events & Attractions", 25, 70, 0.015, 0.25, 28, {}, -0.2, ("Park", "Cinemas", "Tickets")),
    Industry("Finance", 49, 150, 0.040, 0.03, 8, {}, 0.4, ("Payments", "Invest", "Credit")),
    Industry("Fitness", 13, 45, 0.060, 0.12, 3, {}, 0.2, ("Gym", "Cycling", "Yoga")),
    Industry("General Merchandise", 89, 35, 0.070, 0.03, 48, GIFTS, 0.2, ("Market", "Depot", "Bargains")),
    Industry("Gig Economy Income", 2, 120, 0.120, 0.05, 48, {}, 0.0, ("Driver Pay", "Shifts")),
    Industry("Grocers", 111, 45, 0.120, 0.02, 50, FEAST, 0.4, ("Foods", "Grocery", "Pantry")),
    Industry("Health & Beauty", 36, 50, 0.020, 0.03, 47, GIFTS, 0.1, ("Beauty", "Apothecary", "Optics")),
    Industry("Healthcare & Insurance", 13, 150, 0.030, 0.04, 2, {}, 0.7, ("Insurance", "Health", "Mutual")),
    Industry("Hobbies & Toys", 10, 45, 0.025, 0.08, 48, TOYS, 0.0, ("Toys", "Crafts")),
    Industry("Home", 52, 125, 0.012, 0.12, 21, SPRING, 0.0, ("Home", "Interiors", "Garden")),
    Industry(
        "Home Entertainment", 63, 22, 0.050, 0.04, 1, {"Christmas Day": 0.2}, 0.4, ("Books", "Play", "TV")
    ),
    Industry("Occasion & Gifts", 14, 55, 0.010, 0.05, 48, FLOWERS, -0.2, ("Flowers", "Prints", "Gifts")),
    Industry("Pets", 9, 60, 0.050, 0.03, 26, {}, 0.3, ("Pets", "Kennel")),
    Industry(
        "Restaurants", 192, 22, 0.050, 0.04, 27, {"Mother's Day": 0.05}, 0.2, ("Kitchen", "Grill", "Pizza")
    ),
    Industry("Specialty", 7, 30, 0.030, 0.04, 50, GIFTS, 0.0, ("Parcel", "Post")),
    Industry("Specialty Food & Beverage", 6, 50, 0.030, 0.04, 50, FEAST, 0.1, ("Wines", "Roasters")),
    Industry("Sporting Goods", 15, 90, 0.012, 0.10, 24, GIFTS, 0.0, ("Sports", "Outfitters")),
    Industry("Telecommunication", 22, 105, 0.080, 0.02, 40, {}, 0.8, ("Mobile", "Cable", "Wireless")),
    Industry("Travel & Transportation", 65, 190, 0.015, 0.16, 25, {}, 0.0, ("Air", "Lodging", "Transit")),
)


def allocate(firms: int) -> list[Industry]:
    """The industry of each of `firms` firms: shares as in the full economy, industries interleaved.

    Rounding is by largest remainders, ties go to the bigger industry; industries alternate in the list, so that even
    the first few firms differ.
    """
    if firms < 1:
        raise ValueError(f"an economy needs at least one firm, got {firms}")
    total = sum(industry.firms for industry in INDUSTRIES)
    quota = [industry.firms * firms / total for industry in INDUSTRIES]
    count = [int(share) for share in quota]
    by_remainder = sorted(
        range(len(quota)), key=lambda k: (count[k] - quota[k], -INDUSTRIES[k].firms, INDUSTRIES[k].name)
    )
    for k in by_remainder[: firms - sum(count)]:
        count[k] += 1
    places = [((n + 0.5) / count[k], k) for k in range(len(count)) for n in range(count[k])]
    return [INDUSTRIES[k] for _, k in sorted(places)]
