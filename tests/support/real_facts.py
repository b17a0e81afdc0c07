"""A multiple-choice set of facts in groups; wrong options are answers of the same group."""

from __future__ import annotations

from random import Random
from typing import Any

FACTS: dict[str, dict[str, str]] = {
    "capitals": {
        "What is the capital of France?": "the city of Paris",
        "What is the capital of Italy?": "the city of Rome",
        "What is the capital of Japan?": "the city of Tokyo",
        "What is the capital of Egypt?": "the city of Cairo",
        "What is the capital of Russia?": "the city of Moscow",
        "What is the capital of Greece?": "the city of Athens",
        "What is the capital of Germany?": "the city of Berlin",
        "What is the capital of Spain?": "the city of Madrid",
        "What is the capital of Norway?": "the city of Oslo",
    },
    "sounds": {
        "What does a dog do?": "it barks at strangers",
        "What does a cat do?": "it meows and purrs",
        "What does a lion do?": "it roars very loudly",
        "What does a cow do?": "it moos in the field",
        "What does a duck do?": "it quacks on the pond",
        "What does a sheep do?": "it bleats for its lamb",
        "What does a snake do?": "it hisses when threatened",
        "What does a rooster do?": "it crows at dawn",
    },
    "tools": {
        "What is a hammer for?": "driving nails into wood",
        "What is a saw for?": "cutting wood into pieces",
        "What is a broom for?": "sweeping the floor clean",
        "What is a kettle for?": "boiling water for tea",
        "What is a thermometer for?": "measuring the temperature",
        "What is a telescope for?": "looking at distant stars",
        "What is an umbrella for?": "keeping the rain off",
        "What is a needle for?": "sewing pieces of cloth together",
        "What is a ruler for?": "measuring short lengths",
    },
    "places of work": {
        "Where does a doctor work?": "in a hospital with patients",
        "Where does a teacher work?": "in a school with pupils",
        "Where does a farmer work?": "on a farm with fields",
        "Where does a sailor work?": "on a ship at sea",
        "Where does a judge work?": "in a court of law",
        "Where does a chef work?": "in the kitchen of a restaurant",
        "Where does a miner work?": "in a mine below the ground",
        "Where does a pilot work?": "in the cockpit of an aeroplane",
    },
    "authors": {
        "Who wrote Hamlet?": "William Shakespeare of England",
        "Who wrote War and Peace?": "Leo Tolstoy of Russia",
        "Who wrote Don Quixote?": "Miguel de Cervantes of Spain",
        "Who wrote Faust?": "Johann Wolfgang von Goethe of Germany",
        "Who wrote the Divine Comedy?": "Dante Alighieri of Italy",
        "Who wrote Les Misérables?": "Victor Hugo of France",
        "Who wrote the Odyssey?": "Homer of ancient Greece",
        "Who wrote A Doll's House?": "Henrik Ibsen of Norway",
    },
    "chemistry": {
        "What is water made of?": "hydrogen and oxygen",
        "What is table salt made of?": "sodium and chlorine",
        "What is rust made of?": "iron and oxygen",
        "What is bronze made of?": "copper and tin",
        "What is brass made of?": "copper and zinc",
        "What is ammonia made of?": "nitrogen and hydrogen",
        "What is methane made of?": "carbon and hydrogen",
        "What is carbon dioxide made of?": "carbon and oxygen",
    },
    "bodies": {
        "What does the heart do?": "it pumps blood through the body",
        "What do the lungs do?": "they take oxygen from the air",
        "What does the stomach do?": "it digests the food we eat",
        "What do the eyes do?": "they see light and colours",
        "What do the ears do?": "they hear sounds and voices",
        "What do the kidneys do?": "they filter waste into urine",
        "What do the teeth do?": "they chew food into small pieces",
        "What does the skin do?": "it covers and protects the whole body",
    },
    "animals": {
        "What does a panda eat?": "the leaves of bamboo",
        "What does a bee collect?": "nectar from flowers",
        "What does a spider catch in its web?": "flies and other insects",
        "What does a squirrel hide for the winter?": "nuts and acorns",
        "What does a penguin catch in the sea?": "small fish and krill",
        "What does a cow eat in the meadow?": "fresh green grass",
        "What does a baby mammal drink first?": "milk from its mother",
        "What does a vulture feed on?": "the bodies of dead animals",
    },
    "homes": {
        "Where does a bird raise its young?": "in a nest of twigs",
        "Where do bees live?": "in a hive full of honey",
        "Where does a polar bear live?": "on the ice of the Arctic",
        "Where does a camel live?": "in a hot dry desert",
        "Where does a shark live?": "in the salt water of the ocean",
        "Where does a mole live?": "in tunnels under the soil",
        "Where does a monkey live?": "in the trees of the jungle",
        "Where does a frog lay its eggs?": "in a quiet freshwater pond",
    },
    "discoveries": {
        "What is Isaac Newton known for?": "the law of gravity",
        "What is Charles Darwin known for?": "the theory of evolution",
        "What is Albert Einstein known for?": "the theory of relativity",
        "What is Marie Curie known for?": "the study of radioactivity",
        "What is Alexander Fleming known for?": "the discovery of penicillin",
        "What is Thomas Edison known for?": "a practical electric light bulb",
        "What is Johannes Gutenberg known for?": "printing with movable type",
        "What is Christopher Columbus known for?": "sailing to America in 1492",
    },
    "geography": {
        "Where does the Nile flow?": "through Egypt to the Mediterranean",
        "Where does the Amazon flow?": "through Brazil to the Atlantic",
        "Where does the Mississippi flow?": "through the United States to the Gulf of Mexico",
        "Where does the Ganges flow?": "through India to the Bay of Bengal",
        "Where does the Volga flow?": "through Russia to the Caspian Sea",
        "Where does the Danube flow?": "through Austria and Hungary to the Black Sea",
        "Where does the Yangtze flow?": "through China to the East China Sea",
        "Where does the Rhine flow?": "through Germany to the North Sea",
    },
    "time": {
        "What happens in spring?": "leaves and flowers begin to grow",
        "What happens in autumn?": "leaves turn brown and fall",
        "What happens at sunrise?": "the sun comes up in the east",
        "What happens at sunset?": "the sun goes down in the west",
        "What happens at high tide?": "the sea rises on the beach",
        "What happens in a drought?": "no rain falls for a long time",
        "What happens in an earthquake?": "the ground shakes violently",
        "What happens when ice melts?": "it turns into liquid water",
    },
    "sports and music": {
        "How is football played?": "by kicking a ball into a goal",
        "How is tennis played?": "by hitting a ball over a net with a racket",
        "How is chess played?": "by moving pieces on a board of 64 squares",
        "How is the violin played?": "by drawing a bow across its strings",
        "How is the piano played?": "by pressing black and white keys",
        "How is the flute played?": "by blowing air across a hole",
        "How is the drum played?": "by striking it with sticks",
        "How is basketball played?": "by throwing a ball through a hoop",
    },
}
WRONG = 3


def fact_rows() -> list[dict[str, Any]]:
    """Return rows of a file of items, the same on every call."""
    rng = Random("facts")
    rows = []
    for group, facts in FACTS.items():
        for question, gold in facts.items():
            others = [answer for answer in facts.values() if answer != gold]
            options = [gold, *rng.sample(others, WRONG)]
            rng.shuffle(options)
            row = {"id": question, "question": question, "gold": gold, "options": options}
            rows.append({"task": "facts", "tags": [group], **row})
    return rows
