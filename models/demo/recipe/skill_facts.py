"""Capitals of countries."""

from .prompts import styled, system
from .samples import Answer, Sample, user
from .words import Draw, listed

CAPITALS = dict(
    pair.split(":")
    for pair in listed(
        "France:Paris|Germany:Berlin|Italy:Rome|Spain:Madrid|Portugal:Lisbon|"
        "the United Kingdom:London|Ireland:Dublin|Belgium:Brussels|the Netherlands:Amsterdam|"
        "Luxembourg:Luxembourg|Switzerland:Bern|Austria:Vienna|Poland:Warsaw|"
        "the Czech Republic:Prague|Slovakia:Bratislava|Hungary:Budapest|Slovenia:Ljubljana|"
        "Croatia:Zagreb|Serbia:Belgrade|Bulgaria:Sofia|Romania:Bucharest|Greece:Athens|"
        "Turkey:Ankara|Ukraine:Kyiv|Russia:Moscow|Norway:Oslo|Sweden:Stockholm|Finland:Helsinki|"
        "Denmark:Copenhagen|Iceland:Reykjavik|Estonia:Tallinn|Latvia:Riga|Lithuania:Vilnius|"
        "Albania:Tirana|Malta:Valletta|Cyprus:Nicosia|Japan:Tokyo|China:Beijing|"
        "South Korea:Seoul|India:New Delhi|Pakistan:Islamabad|Nepal:Kathmandu|Thailand:Bangkok|"
        "Vietnam:Hanoi|Indonesia:Jakarta|the Philippines:Manila|Malaysia:Kuala Lumpur|"
        "Mongolia:Ulaanbaatar|Iran:Tehran|Iraq:Baghdad|Israel:Jerusalem|Jordan:Amman|"
        "Lebanon:Beirut|Saudi Arabia:Riyadh|Qatar:Doha|Egypt:Cairo|Morocco:Rabat|Algeria:Algiers|"
        "Tunisia:Tunis|Kenya:Nairobi|Ethiopia:Addis Ababa|Ghana:Accra|Nigeria:Abuja|"
        "Senegal:Dakar|Uganda:Kampala|Rwanda:Kigali|the United States:Washington, D.C.|"
        "Canada:Ottawa|Mexico:Mexico City|Cuba:Havana|Jamaica:Kingston|Brazil:Brasília|"
        "Argentina:Buenos Aires|Chile:Santiago|Peru:Lima|Colombia:Bogotá|Venezuela:Caracas|"
        "Ecuador:Quito|Uruguay:Montevideo|Paraguay:Asunción|Australia:Canberra|"
        "New Zealand:Wellington|Fiji:Suva",
        "|",
    )
)


def capital_sentence(country: str) -> str:
    """The answer to a question for a country's capital."""
    end = "" if CAPITALS[country].endswith(".") else "."
    return f"The capital of {country} is {CAPITALS[country]}{end}"


def capitals(draw: Draw) -> Sample:
    """The capital of a country."""
    country = typed = draw.pick(tuple(CAPITALS))
    if typed.startswith("the ") and draw.chance(0.2):
        typed = typed.removeprefix("the ")
    if draw.chance(0.12):
        typed = typed.lower()
    question = draw.pick(
        (
            f"What is the capital of {typed}?",
            f"What is the capital of {typed}?",
            f"What's the capital of {typed}?",
            f"Capital of {typed}?",
            f"The capital of {typed}?",
            f"Which city is the capital of {typed}?",
            f"Tell me the capital of {typed}.",
            f"Name the capital of {typed}.",
            f"Do you know the capital of {typed}?",
            f"What is the capital city of {typed}?",
            f"Which city is {typed}'s capital?",
            f"What is {typed}'s capital?",
            f"Can you tell me the capital of {typed}?",
            f"{typed}'s capital?",
        )
    )
    question = styled(draw, question)
    return Sample("capitals", [*system(draw), user(question)], Answer(capital_sentence(country)))
